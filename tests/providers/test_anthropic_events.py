"""What servers of Anthropic messages stream, and what it is read as."""

from __future__ import annotations

from typing import Any

import pytest

from op_jupyter.events import BlockDelta, BlockEnd
from op_jupyter.messages import ServerContent, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._anthropic_events import read_events
from op_jupyter.providers._shared import ProviderError
from tests.providers.adapter import Reply
from tests.providers.anthropic_wire import (
    PING,
    STOP,
    block,
    call,
    event,
    message_delta,
    message_start,
    reply_of,
    text,
    thinking,
    whole,
)

# -------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("begun", "pieces", "arguments", "raw"),
    [
        ({"input": {}}, [], {}, None),
        ({"input": None}, [], {}, None),
        ({}, [], {}, None),
        ({"input": {}}, [""], {}, None),
        ({"input": {}}, ["", "{}"], {}, None),
        ({"input": {"a": 1}}, [], {"a": 1}, None),
        ({"input": {"a": 1}}, [""], {"a": 1}, None),
        ({"input": {}}, ['{"a"', ": 1}"], {"a": 1}, None),
        ({"input": {}}, ["[1, 2]"], {}, "[1, 2]"),
        ({"input": {}}, ['{"a": '], {}, '{"a": '),
        ({"input": {}}, ["null"], {}, "null"),
    ],
)
def test_arguments_come_in_the_first_event_or_in_pieces_or_not_at_all(
    begun: dict[str, Any], pieces: list[str], arguments: dict[str, Any], raw: str | None
) -> None:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    events = block(0, {"type": "tool_use", "id": "toolu_1", "name": "add"} | begun, *deltas)
    reply = reply_of(*whole(events, stop_reason="tool_use"))
    assert reply.content == [ToolCall("toolu_1", "add", arguments, raw)]
    assert reply.end.stop_reason == "tool_use"


def test_arguments_are_shown_as_they_are_written_but_not_those_of_the_server() -> None:
    ours, theirs = call(0, "c1", "add", '{"a"', ": 1}"), call(1, "s1", "web_search", "{}", kind="server_tool_use")
    deltas = [event for event in reply_of(*whole(ours, theirs)).events if isinstance(event, BlockDelta)]
    assert [(delta.index, delta.text) for delta in deltas] == [(0, '{"a"'), (0, ": 1}")]


def test_what_a_broken_reply_was_writing_has_its_end() -> None:
    events = [message_start(), *text(0, "Let me see"), *call(1, "c1", "add", '{"a": ')[:-1]]
    reply = reply_of(*map(event, events))
    assert [end.index for end in reply.events if isinstance(end, BlockEnd)] == [0, 1]
    assert reply.content == [TextContent("Let me see"), ToolCall("c1", "add", {}, '{"a": ')]


def test_blocks_whose_deltas_are_mixed_are_told_apart() -> None:
    first, second = call(0, "c1", "add", '{"a": 1}'), call(1, "c2", "add", '{"a": 2}')
    mixed = [first[0], second[0], *second[1:-1], *first[1:-1], second[-1], first[-1]]
    assert [made.arguments for made in reply_of(*whole(mixed)).calls] == [{"a": 1}, {"a": 2}]


def test_a_function_that_code_of_the_server_called_remembers_by_whom() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    begun = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    by_code, by_model = block(0, begun | {"caller": caller}), block(1, begun | {"caller": {"type": "direct"}})
    one, two = reply_of(*whole(by_code, by_model)).calls
    assert (one.provider_data, two.provider_data) == ({"anthropic": {"caller": caller}}, None)


# -------------------------------------------------------------------- text and thinking


def test_pings_and_events_that_are_not_known_yet_are_nothing() -> None:
    unknown = {"type": "content_block_delta", "index": 0, "delta": {"type": "aura_delta", "aura": "blue"}}
    begun, *rest = text(0, "It is ", "3.")
    reply = reply_of(*whole(PING, begun, PING, unknown, {"type": "weather"}, rest, PING))
    assert reply.content == [TextContent("It is 3.")]


def test_a_text_that_is_there_from_the_beginning_is_shown_too() -> None:
    reply = reply_of(*whole(block(0, {"type": "text", "text": "It is "}, {"type": "text_delta", "text": "3."})))
    assert [delta.text for delta in reply.events if isinstance(delta, BlockDelta)] == ["It is ", "3."]
    assert reply.text == "It is 3."


def test_thinking_keeps_its_signature_and_what_it_is_bound_to() -> None:
    reply = reply_of(*whole(thinking(0, "Hm, ", "3? \n")), basis="b")
    assert reply.content == [
        ThinkingContent("Hm, 3? \n", provider_data={"anthropic": {"signature": "c2ln", "basis": "b"}})
    ]


def test_thinking_that_is_signed_but_not_shown_is_kept() -> None:
    (shown,) = reply_of(*whole(thinking(0))).content
    assert shown == ThinkingContent("", provider_data={"anthropic": {"signature": "c2ln", "basis": "b"}})


def test_thinking_in_secret_is_kept_as_it_came() -> None:
    (secret,) = reply_of(*whole(block(0, {"type": "redacted_thinking", "data": "ZW5j"}))).content
    assert secret == ThinkingContent("", redacted=True, provider_data={"anthropic": {"data": "ZW5j", "basis": "b"}})


def test_thinking_that_broke_off_is_not_signed() -> None:
    begun = [event(one) for one in [message_start(), *thinking(0, "Hm")[:-2]]]
    assert reply_of(*begun).content == [ThinkingContent("Hm")]


def test_a_blank_text_is_marked_as_one_that_the_model_wrote() -> None:
    reply = reply_of(*whole(text(0, "\n\n"), thinking(1, "Hm"), text(2)))
    assert reply.content[0] == TextContent("\n\n", {"anthropic": {"blank": True}})
    assert reply.content[2] == TextContent("")


def test_a_text_keeps_its_citations() -> None:
    cited = {"type": "web_search_result_location", "url": "https://example.org", "encrypted_index": "ZW5j"}
    deltas: list[dict[str, Any]] = [
        {"type": "text_delta", "text": "Yes."},
        {"type": "citations_delta", "citation": cited},
    ]
    (said,) = reply_of(*whole(block(0, {"type": "text", "text": "", "citations": None}, *deltas))).content
    assert said == TextContent("Yes.", {"anthropic": {"citations": [cited]}})


# -------------------------------------------------------------------- what the server runs


def test_what_the_server_runs_is_shown_and_is_no_call_of_ours() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "https://example.org"}]}
    asked = call(0, "s1", "web_search", '{"query"', ': "tea"}', kind="server_tool_use")
    reply = reply_of(*whole(asked, block(1, found), text(2, "Tea it is.")))
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "tea"}}
    assert reply.content == [
        ServerContent("web_search", use, {"anthropic": {"type": "server_tool_use"}}),
        ServerContent("web_search_tool_result", found, {"anthropic": {"type": "web_search_tool_result"}}),
        TextContent("Tea it is."),
    ]
    assert reply.end.stop_reason == "stop"


@pytest.mark.parametrize(
    "begun",
    [
        {"type": "mcp_tool_use", "id": "m1", "name": "ask", "server_name": "wiki", "input": {"q": 1}},
        {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": [{"type": "text", "text": "a"}]},
        {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {"stdout": "3", "return_code": 0}},
        {"type": "advisor_tool_result", "tool_use_id": "s1", "content": {"type": "advisor_result", "text": "4"}},
        {"type": "container_upload", "file_id": "file_1"},
        {"type": "something_of_next_year", "shape": [1, {"a": None}]},
    ],
    ids=lambda begun: begun["type"],
)
def test_every_kind_of_server_block_is_kept_whole(begun: dict[str, Any]) -> None:
    (kept,) = reply_of(*whole(block(0, begun))).content
    assert isinstance(kept, ServerContent)
    assert kept.data == begun


def test_a_summary_of_the_conversation_is_put_together() -> None:
    delta = {"type": "compaction_delta", "content": "They spoke of tea.", "encrypted_content": "ZW5j"}
    (kept,) = reply_of(*whole(block(0, {"type": "compaction", "content": None}, delta))).content
    assert isinstance(kept, ServerContent)
    summary = {"type": "compaction", "content": "They spoke of tea.", "encrypted_content": "ZW5j"}
    assert (kept.name, kept.data) == ("compaction", summary)


def test_the_container_in_which_code_ran_is_remembered() -> None:
    container = {"id": "container_1", "expires_at": "2026-12-01T10:00:00Z"}
    end = reply_of(*whole(text(0, "Done"), container=container)).end
    assert end.provider_data == {"anthropic": {"container": container}}


# -------------------------------------------------------------------- the end


@pytest.mark.parametrize(
    ("finish", "stop_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "tool_use"),
        ("compaction", "stop"),
        ("something_of_next_year", "stop"),
    ],
)
def test_how_a_reply_ends(finish: str, stop_reason: str) -> None:
    end = reply_of(*whole(text(0, "Well"), stop_reason=finish)).end
    assert (end.stop_reason, end.finish) == (stop_reason, finish)


def test_calls_count_whatever_the_end_is_called() -> None:
    assert reply_of(*whole(call(0, "c1", "now"), stop_reason="end_turn")).end.stop_reason == "tool_use"
    assert reply_of(*whole(call(0, "c1", "now"), stop_reason="max_tokens")).end.stop_reason == "length"


@pytest.mark.parametrize("said", [[], text(0, "I ")], ids=["at once", "after some text"])
def test_a_refusal_is_an_error_with_its_reason(said: list[dict[str, Any]]) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It is against the usage policy."}
    end = reply_of(*whole(said, stop_reason="refusal", stop_details=details)).end
    assert (end.stop_reason, end.error_kind, end.finish) == ("error", "filter", "refusal")
    assert end.error_message == "The model refused (cyber): It is against the usage policy."


def test_a_refusal_without_a_reason_says_what_can_be_done() -> None:
    assert "other words" in (reply_of(*whole(stop_reason="refusal", stop_details=None)).end.error_message or "")


def test_without_its_closing_event_a_reply_is_an_error_though_it_looks_complete() -> None:
    pieces = [event(one) for one in [message_start(), *text(0, "It is 3."), message_delta("end_turn")]]
    end = reply_of(*pieces).end
    assert (end.stop_reason, end.error_kind) == ("error", "connection")


def test_nothing_is_read_past_the_closing_event() -> None:
    assert reply_of(*whole(text(0, "3")), b"data: {not json\n\n").end.stop_reason == "stop"


# -------------------------------------------------------------------- usage


def test_later_counts_replace_and_a_null_erases_nothing() -> None:
    start = message_start(input_tokens=100, cache_read_input_tokens=80, cache_creation_input_tokens=5, output_tokens=1)
    first = message_delta("end_turn", {"output_tokens": 9, "cache_read_input_tokens": None, "input_tokens": None})
    last = message_delta(
        "end_turn",
        {"output_tokens": 30, "input_tokens": 120, "output_tokens_details": {"thinking_tokens": 12}},
    )
    end = reply_of(*map(event, [start, *text(0, "3"), first, last, STOP])).end
    assert end.usage == Usage(input=120, output=30, cache_read=80, cache_write=5, reasoning=12)


def test_counts_of_a_reply_that_broke_off_are_kept() -> None:
    pieces = [event(one) for one in [message_start(input_tokens=100), *text(0, "It")]]
    assert reply_of(*pieces).end.usage.input == 100


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": "many", "output_tokens": -0.5}])
def test_counts_that_make_no_sense_are_none(usage: Any) -> None:
    start = {"type": "message_start", "message": {"usage": usage}}
    end = reply_of(*map(event, [start, *text(0, "3"), {"type": "message_delta", "delta": {}}, STOP])).end
    assert (end.usage, end.stop_reason) == (Usage(), "stop")


# -------------------------------------------------------------------- errors in the stream


@pytest.mark.parametrize(
    ("error", "kind", "may_pass"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "provider", True),
        ({"type": "api_error", "message": "Internal server error"}, "provider", True),
        ({"type": "timeout_error", "message": "Too slow"}, "provider", True),
        ({"type": "rate_limit_error", "message": "Too many"}, "rate_limit", True),
        ({"type": "throttlingException", "message": "Too many requests"}, "rate_limit", True),
        ({"type": "invalid_request_error", "message": "messages: empty"}, "provider", False),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}, "context", False),
        ({"type": "billing_error", "message": "Pay first"}, "quota", False),
        ({"type": "not_found_error", "message": "model: x"}, "not_found", False),
        ({"type": "permission_error", "message": "Not yours"}, "auth", False),
        ({"type": "something_new", "message": "Oh"}, "provider", True),
        ({}, "provider", True),
    ],
)
def test_an_error_in_the_stream_has_its_kind(error: dict[str, Any], kind: str, may_pass: bool) -> None:
    failed = event({"type": "error", "error": error})
    after = reply_of(event(message_start()), *map(event, text(0, "Half")), failed)
    assert (after.end.stop_reason, after.end.error_kind, after.text) == ("error", kind, "Half")
    assert error.get("message", "no reason") in (after.end.error_message or "")
    if may_pass:
        with pytest.raises(ProviderError) as raised:
            reply_of(event(message_start()), failed)
        assert (raised.value.kind, raised.value.retry) == (kind, True)
    else:
        assert reply_of(event(message_start()), failed).end.error_kind == kind


@pytest.mark.parametrize(
    "odd",
    ["{", '"text"', "[1]", '{"type": null}', '{"type": "content_block_start"}', '{"type": "content_block_stop"}'],
)
def test_what_makes_no_sense_is_an_error_or_nothing_but_never_an_exception(odd: str) -> None:
    data = ['{"type": "message_start"}', odd, '{"type": "message_stop"}']
    assert Reply(list(read_events(data))).end.stop_reason in ("stop", "error")


def test_more_of_a_block_that_has_not_begun_is_an_error() -> None:
    stray = {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "?"}}
    end = reply_of(*whole(text(0, "It"), stray)).end
    assert (end.stop_reason, end.error_kind) == ("error", "provider")
