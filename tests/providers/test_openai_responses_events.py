"""How the reply of a server that speaks OpenAI responses is read, and what comes of one that is odd."""

from __future__ import annotations

from typing import Any

import pytest

from op_jupyter.events import BlockDelta, BlockEnd, BlockStart
from op_jupyter.messages import ServerContent, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._responses_events import read_events
from op_jupyter.providers._shared import ProviderError
from tests.providers.adapter import Reply
from tests.providers.responses_wire import call, delta, end, event, item, reply_of, text, thinking, whole


def own(block: Any) -> dict[str, Any]:
    found: dict[str, Any] = (block.provider_data or {}).get("openai-responses", {})
    return found


# -------------------------------------------------------------------- blocks


def test_all_that_has_to_go_back_is_kept() -> None:
    reply = reply_of(*whole(thinking(0, "I ", "add."), text(1, "So: ", phase="commentary"), call(2, "c1", "add", "{}")))
    thought, said, called = reply.content
    assert thought == ThinkingContent("I add.", False, thought.provider_data)
    assert own(thought) == {
        "type": "reasoning",
        "id": "rs_0",
        "summary": [{"type": "summary_text", "text": "I add."}],
        "encrypted_content": "ZW5j",
    }
    assert own(said) == {"id": "msg_1", "phase": "commentary"}
    assert own(called) == {"id": "fc_2"}
    assert own(reply.end) == {"model": "gpt-test"}


def test_thinking_that_is_only_encrypted_is_redacted() -> None:
    (thought,) = reply_of(*whole(thinking(0))).content
    assert isinstance(thought, ThinkingContent)
    assert (thought.thinking, thought.redacted, own(thought)["encrypted_content"]) == ("", True, "ZW5j")


def test_the_parts_of_a_summary_are_paragraphs() -> None:
    parts = [{"type": "summary_text", "text": said} for said in ("First.", "Second.")]
    added = {"type": "response.reasoning_summary_part.added"}
    deltas = [added, delta("reasoning_summary_text", "First."), added, delta("reasoning_summary_text", "Second.")]
    reply = reply_of(*whole(item(0, {"type": "reasoning", "id": "rs_0", "summary": parts}, *deltas, summary=[])))
    assert [block.thinking for block in reply.content if isinstance(block, ThinkingContent)] == ["First.\n\nSecond."]
    streamed = "".join(event.text for event in reply.events if isinstance(event, BlockDelta))
    assert streamed == "First.\n\nSecond."


def test_the_parts_of_a_message_are_one_text_and_go_back_apart() -> None:
    cited = {"type": "file_citation", "file_id": "file_1", "index": 2, "filename": "tea.txt"}
    parts = [
        {"type": "output_text", "text": said, "annotations": notes, "logprobs": []}
        for said, notes in (("Tea ", [cited]), ("it is.", []))
    ]
    message = {"type": "message", "id": "msg_0", "content": parts}
    deltas = [delta("output_text", "Tea "), delta("output_text", "it is.", content_index=1)]
    (said,) = reply_of(*whole(item(0, message, *deltas, content=[]))).content
    assert said == TextContent("Tea it is.", said.provider_data)
    assert [part["annotations"] for part in own(said)["content"]] == [[cited], []]
    assert "logprobs" not in own(said)["content"][0]


def test_a_message_without_text_is_no_block() -> None:
    message = {"type": "message", "id": "msg_0", "content": []}
    assert reply_of(*whole(item(0, message))).content == []


@pytest.mark.parametrize("pieces", [[], ["{}"], ['{"a"', ": 1}"]], ids=["none", "an empty object", "two"])
def test_arguments_come_in_pieces_and_then_as_a_whole_or_only_so(pieces: list[str]) -> None:
    events = call(0, "c1", "add", *pieces)
    events[-1]["item"]["arguments"] = '{"a": 1}'
    (called,) = reply_of(*whole(events)).calls
    assert (called.id, called.name, called.arguments, called.raw_arguments) == ("c1", "add", {"a": 1}, None)


@pytest.mark.parametrize(
    ("written", "arguments", "raw"), [("", {}, None), ("{}", {}, None), ("[1, 2]", {}, "[1, 2]"), ("null", {}, "null")]
)
def test_arguments_that_are_no_object_are_none(written: str, arguments: dict[str, Any], raw: str | None) -> None:
    (called,) = reply_of(*whole(call(0, "c1", "add", written))).calls
    assert (called.arguments, called.raw_arguments) == (arguments, raw)


def test_a_call_that_is_cut_short_keeps_what_came_of_it() -> None:
    events = call(0, "c1", "add", '{"a": 1', "}")[:2]
    reply = reply_of(event(events[0]), event(events[1]))
    assert [(call.arguments, call.raw_arguments) for call in reply.calls] == [({}, '{"a": 1')]
    assert own(reply.calls[0]) == {}
    assert (reply.end.stop_reason, reply.end.error_kind) == ("error", "connection")


def test_thinking_that_is_cut_short_is_shown_and_does_not_go_back() -> None:
    reply = reply_of(*map(event, thinking(0, "Hm", " so")[:2]))
    assert reply.content == [ThinkingContent("Hm")]


def test_a_custom_tool_is_called_with_a_text() -> None:
    called = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sql", "input": '{"a": 1}'}
    reply = reply_of(*whole(item(0, called, delta("custom_tool_call_input", '{"a": 1}'), input="")))
    assert reply.calls == [
        ToolCall("c1", "sql", {"a": 1}, None, {"openai-responses": {"id": "ctc_1", "input": '{"a": 1}'}})
    ]
    assert reply.end.stop_reason == "tool_use"


@pytest.mark.parametrize(
    "ran",
    [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "tea"}},
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["tea"], "results": None},
        {"type": "code_interpreter_call", "id": "ci_1", "code": "1 + 2", "container_id": "cntr_1", "outputs": []},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw=="},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"},
        {"type": "mcp_call", "id": "mcp_1", "name": "shorten", "arguments": "{}", "output": "✅", "server_label": "z"},
        {"type": "what_is_yet_to_be_invented", "id": "x_1"},
    ],
    ids=lambda ran: str(ran["type"]),
)
def test_what_the_server_ran_is_shown_and_no_call(ran: dict[str, Any]) -> None:
    progress = {"type": f"response.{ran['type']}.in_progress"}
    reply = reply_of(*whole(item(0, ran, progress, status="in_progress"), text(1, "Done.")))
    shown, said = reply.content
    assert shown == ServerContent(ran.get("name", ran["type"]), ran, {"openai-responses": {"type": ran["type"]}})
    assert isinstance(said, TextContent)
    assert reply.end.stop_reason == "stop"


# -------------------------------------------------------------------- odd servers


def test_a_server_may_count_no_positions() -> None:
    events = [*text(0, "So: "), *call(1, "c1", "add", '{"a": 1}'), *call(2, "c2", "add", '{"a": 2}')]
    for one in events:
        del one["output_index"]
    mixed = [events[0], events[3], events[6], events[1], events[7], events[4], events[8], events[5], events[2]]
    reply = reply_of(*whole(mixed))
    assert (reply.text, [call.arguments for call in reply.calls]) == ("So: ", [{"a": 1}, {"a": 2}])


def test_a_server_may_give_an_item_another_id_in_each_event() -> None:
    events = [*thinking(0, "Hm"), *text(1, "So: ", "3"), *call(2, "c1", "add", '{"a": ', "1}")]
    for n, one in enumerate(events):
        named = one.get("item", one)
        named["id" if "item" in one else "item_id"] = f"capture-{n}"
    reply = reply_of(*whole(events))
    assert [block.kind for block in reply.content] == ["thinking", "text", "tool_call"]
    assert (reply.text, reply.calls[0].arguments) == ("So: 3", {"a": 1})
    assert [own(block)["id"] for block in reply.content] == ["capture-2", "capture-6", "capture-10"]


def test_items_that_overlap_keep_their_order() -> None:
    thought, said = thinking(0, "Hm"), text(1, "3")
    reply = reply_of(*whole(thought[:2], said, thought[2:]))
    assert [block.kind for block in reply.content] == ["thinking", "text"]
    assert [event.index for event in reply.events if isinstance(event, BlockStart)] == [0, 1]
    assert [event.index for event in reply.events if isinstance(event, BlockEnd)] == [1, 0]


def test_an_item_may_come_as_a_whole() -> None:
    reply = reply_of(*whole(thinking(0, "Hm")[-1], text(1, "3")[-1], call(2, "c1", "now", "{}")[-1]))
    assert [block.kind for block in reply.content] == ["thinking", "text", "tool_call"]
    assert reply.end.stop_reason == "tool_use"


def test_more_of_an_item_that_was_not_begun_is_said() -> None:
    reply = reply_of(event(delta("output_text", "x", output_index=3)))
    assert (reply.end.stop_reason, reply.end.error_kind) == ("error", "provider")


def test_what_is_no_json_is_said() -> None:
    assert "no JSON" in (Reply(list(read_events(["<html>"]))).end.error_message or "")


def test_done_without_a_closing_event_is_no_end() -> None:
    data = [piece.decode().partition("data: ")[2].strip() for piece in whole(text(0, "Half a sen"))[:-1]]
    reply = Reply(list(read_events([*data, "[DONE]"])))
    assert (reply.end.stop_reason, reply.end.error_kind, reply.text) == ("error", "connection", "Half a sen")


# -------------------------------------------------------------------- how it ends


@pytest.mark.parametrize(
    ("ending", "stop_reason", "finish", "kind"),
    [
        ({}, "stop", "completed", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", None, None),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_messages"}}, "length", None, None),
        ({"status": "incomplete"}, "length", "incomplete", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "error", None, "filter"),
        ({"status": "failed", "error": {"code": "server_error", "message": "No."}}, "error", "failed", "provider"),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded"}}, "error", "failed", "rate_limit"),
        ({"status": "failed", "error": {"code": "bio_policy", "message": "No."}}, "error", "failed", "filter"),
        ({"status": "failed", "error": None}, "error", "failed", "provider"),
    ],
)
def test_how_a_reply_ended(ending: dict[str, Any], stop_reason: str, finish: str | None, kind: str | None) -> None:
    reply = reply_of(*whole(text(0, "So"), **ending))
    assert (reply.end.stop_reason, reply.end.error_kind) == (stop_reason, kind)
    assert reply.end.finish == (finish or ending["incomplete_details"]["reason"])
    assert reply.text == "So"
    assert (reply.end.error_message is None) == (kind is None)


def test_calls_of_a_reply_that_was_cut_do_not_run() -> None:
    reply = reply_of(*whole(call(0, "c1", "add", '{"a":'), status="incomplete"))
    assert reply.end.stop_reason == "length"


def test_a_refusal_is_an_error_with_its_reason() -> None:
    part = {"type": "refusal", "refusal": "I can't help with that."}
    refused = item(0, {"type": "message", "id": "msg_0", "content": [part]}, delta("refusal", "I can't"), content=[])
    reply = reply_of(*whole(refused))
    assert (reply.end.stop_reason, reply.end.error_kind, reply.content) == ("error", "filter", [])
    assert "I can't help with that." in (reply.end.error_message or "")


@pytest.mark.parametrize("kind", ["server_error", "rate_limit_exceeded"])
def test_what_may_pass_and_has_shown_nothing_is_tried_again(kind: str) -> None:
    failed = end("failed", error={"code": kind, "message": "Not now."})
    with pytest.raises(ProviderError) as raised:
        reply_of(*map(event, [*thinking(0, "Hm")[:1], *text(1, "x")[:1], failed]))
    assert raised.value.retry


def test_tokens_that_were_read_from_or_written_to_a_cache_are_counted_once() -> None:
    counted = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    closing = end()
    closing["response"]["usage"] = counted
    assert reply_of(event(closing)).end.usage == Usage(10, 9, 60, 30, 4)
    closing["response"]["usage"] = None
    assert reply_of(event(closing)).end.usage == Usage()
