"""How the messages of an event stream of Bedrock are read."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from op_jupyter.events import BlockDelta, BlockStart, StreamEnd
from op_jupyter.messages import ImageContent, ServerContent, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._bedrock_events import read_events
from op_jupyter.providers._shared import ProviderError
from tests.providers.bedrock_wire import (
    Event,
    call,
    delta,
    event,
    exception,
    frame,
    reasoning,
    reply_of,
    stop,
    text,
    whole,
)

pytest.importorskip("boto3", reason="needs op_jupyter[bedrock]")


def base64(data: bytes) -> str:
    return b64encode(data).decode()


# -------------------------------------------------------------------- blocks


def test_a_block_that_holds_only_an_empty_text_is_none() -> None:
    reply = reply_of(*whole(text(0, ""), reasoning(1, "", "Hm.", ""), text(2, "Hi", "", "!")))
    assert reply.content == [
        ThinkingContent("Hm.", provider_data={"bedrock": {"signature": "c2ln", "basis": "b"}}),
        TextContent("Hi!"),
    ]
    assert [event.text for event in reply.events if isinstance(event, BlockDelta)] == ["Hm.", "Hi", "!"]


def test_reasoning_without_a_signature_is_shown_and_bears_nothing() -> None:
    unsigned = [delta(0, reasoningContent={"text": "Hm."}), stop(0)]
    assert reply_of(*whole(unsigned, text(1, "Hi"))).content[0] == ThinkingContent("Hm.")


def test_reasoning_that_is_empty_but_signed_is_kept() -> None:
    (block,) = reply_of(*whole(reasoning(0))).content
    assert block == ThinkingContent("", provider_data={"bedrock": {"signature": "c2ln", "basis": "b"}})


def test_encrypted_reasoning_is_kept_to_the_byte_also_when_it_comes_in_pieces() -> None:
    first, second = b"\x00\xff", b"\x01\x02"  # each padded in base64
    for pieces in ([first + second], [first, second]):
        deltas = [delta(0, reasoningContent={"redactedContent": base64(piece)}) for piece in pieces]
        (block,) = reply_of(*whole([*deltas, stop(0)])).content
        own = {"redactedContent": base64(first + second), "basis": "b"}
        assert block == ThinkingContent("", redacted=True, provider_data={"bedrock": own})


def test_a_block_that_turns_into_another_kind_is_two() -> None:
    mixed: list[Event] = [delta(0, reasoningContent={"text": "Hm."}), delta(0, text="Hi"), stop(0)]
    assert reply_of(*whole(mixed)).content == [ThinkingContent("Hm."), TextContent("Hi")]


@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ["", "{", "}"]])
def test_a_call_without_input_has_no_arguments(pieces: list[str]) -> None:
    (block,) = reply_of(*whole(call(0, "t1", "now", *pieces), stop_reason="tool_use")).content
    assert block == ToolCall("t1", "now")


def test_input_that_is_no_object_is_kept_as_it_was_written() -> None:
    (block,) = reply_of(*whole(call(0, "t1", "add", '{"a": 1', ', "b"'), stop_reason="max_tokens")).content
    assert block == ToolCall("t1", "add", {}, '{"a": 1, "b"')


def test_deltas_of_several_calls_may_be_mixed_together() -> None:
    one, two = call(1, "t1", "add", '{"a"', ": 1}"), call(2, "t2", "add", '{"a"', ": 2}")
    mixed = [event for pair in zip(one, two, strict=True) for event in pair]
    reply = reply_of(*whole(text(0, "Both."), mixed, stop_reason="tool_use"))
    assert [(call.id, call.arguments) for call in reply.calls] == [("t1", {"a": 1}), ("t2", {"a": 2})]


def test_input_for_a_call_that_has_not_begun_is_said() -> None:
    reply = reply_of(*whole(text(0, "Hi"), [delta(3, toolUse={"input": "{}"})]))
    assert (reply.end.stop_reason, reply.text) == ("error", "Hi")


def test_what_the_server_runs_is_shown_and_never_a_call() -> None:
    use = call(0, "s1", "nova_code_interpreter", '{"snippet"', ': "6 * 7"}', type="server_tool_use")
    start = {"toolResult": {"toolUseId": "s1", "type": "nova_code_interpreter_result", "status": "success"}}
    found: list[Event] = [
        ("contentBlockStart", {"contentBlockIndex": 1, "start": start}),
        delta(1, toolResult=[{"json": {"stdOut": "42"}}]),
        delta(1, toolResult=[{"text": "done"}]),
        stop(1),
    ]
    reply = reply_of(*whole(use, found, text(2, "42")))
    name = "nova_code_interpreter"
    given = {"toolUseId": "s1", "name": name, "type": "server_tool_use", "input": {"snippet": "6 * 7"}}
    content = [{"json": {"stdOut": "42"}}, {"text": "done"}]
    assert reply.content == [
        ServerContent(
            "nova_code_interpreter",
            {"toolUse": given | {"input": {"snippet": "6 * 7"}}},
            {"bedrock": {"type": "toolUse"}},
        ),
        ServerContent(
            "nova_code_interpreter_result",
            {"toolResult": start["toolResult"] | {"content": content}},
            {"bedrock": {"type": "toolResult"}},
        ),
        TextContent("42"),
    ]
    assert (reply.calls, reply.end.stop_reason) == ([], "stop")


def test_the_sources_of_a_text_stand_behind_it() -> None:
    sources: list[dict[str, Any]] = [
        {"title": "Tea", "location": {"documentChar": {"documentIndex": 0, "start": 1, "end": 9}}},
        {"location": {"web": {"url": "https://tea.example", "domain": "tea.example"}}},
    ]
    cited = [
        delta(0, text="Tea "),
        *(delta(0, citation=source) for source in sources),
        delta(0, text="it is."),
        stop(0),
    ]
    reply = reply_of(*whole(cited, text(1, "So.")))
    assert reply.content == [
        TextContent("Tea it is."),
        ServerContent("citations", {"citations": sources}, {"bedrock": {"type": "citations"}}),
        TextContent("So."),
    ]


def test_a_picture_that_the_model_draws_is_one() -> None:
    drawn: list[Event] = [
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}),
        delta(0, image={"source": {"bytes": base64(b"\x89PN")}}),
        delta(0, image={"source": {"bytes": base64(b"G\r\n")}}),
        stop(0),
    ]
    assert reply_of(*whole(drawn)).content == [ImageContent(b"\x89PNG\r\n", "image/png")]


def test_what_is_yet_to_be_invented_is_passed_over() -> None:
    pieces = whole([delta(0, text="Hi"), delta(0, smell={"of": "tea"}), ("contentBlockMood", {"mood": 1}), stop(0)])
    reply = reply_of(*pieces)
    assert (reply.content, reply.end.stop_reason) == ([TextContent("Hi")], "stop")


def test_a_start_is_said_before_the_first_piece_and_only_once() -> None:
    reply = reply_of(*whole(text(0, "Hi", " you")))
    assert [event.block for event in reply.events if isinstance(event, BlockStart)] == [TextContent("")]


# -------------------------------------------------------------------- the end


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("yet_to_be_invented", "stop"),
    ],
)
def test_the_reason_to_stop_is_kept_in_the_servers_word(reason: str, stop_reason: str) -> None:
    end = reply_of(*whole(text(0, "Hi"), stop_reason=reason)).end
    assert (end.finish, end.stop_reason, end.error_message) == (reason, stop_reason, None)


@pytest.mark.parametrize("reason", ["end_turn", "tool_use"])
def test_a_reply_with_calls_goes_on_whatever_its_reason_to_stop(reason: str) -> None:
    assert reply_of(*whole(call(0, "t1", "now"), stop_reason=reason)).end.stop_reason == "tool_use"


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_a_malformed_reply_is_an_error_and_sent_again_where_nothing_was_shown(reason: str) -> None:
    end = reply_of(*whole(call(0, "t1", "add", "{"), stop_reason=reason)).end
    assert (end.stop_reason, end.error_kind) == ("error", "provider")
    with pytest.raises(ProviderError, match="malformed") as raised:
        reply_of(*whole(stop_reason=reason))
    assert raised.value.retry


def test_tokens_of_the_cache_are_counted_apart() -> None:
    counted = whole(text(0, "Hi"), inputTokens=5, outputTokens=7, cacheReadInputTokens=100, cacheWriteInputTokens=20)
    assert reply_of(*counted).end.usage == Usage(5, 7, 100, 20)


def test_fields_that_were_asked_for_are_kept() -> None:
    last = event("messageStop", {"stopReason": "end_turn", "additionalModelResponseFields": {"stop_sequence": "."}})
    end = reply_of(*(event(*one) for one in text(0, "Hi")), last).end
    assert end.provider_data == {"bedrock": {"additionalModelResponseFields": {"stop_sequence": "."}}}


@pytest.mark.parametrize(
    ("kind", "message", "error_kind", "retry"),
    [
        ("throttlingException", "Too many requests, please wait.", "rate_limit", True),
        ("validationException", "Input is too long for requested model.", "context", False),
        ("validationException", "The model returned the following errors", "provider", False),
        ("modelStreamErrorException", "The system encountered an unexpected error", "provider", True),
        ("modelTimeoutException", "Timed out", "timeout", True),
        ("internalServerException", "", "provider", True),
        ("serviceUnavailableException", "Bedrock is unable to process your request.", "provider", True),
        ("yetToBeInvented", "No", "provider", True),
    ],
)
def test_an_exception_has_its_kind_before_and_after_the_first_word(
    kind: str, message: str, error_kind: str, retry: bool
) -> None:
    begun = event(*delta(0, text="Half a sen"))
    end = reply_of(begun, exception(kind, message)).end
    assert (end.stop_reason, end.error_kind) == ("error", error_kind)
    assert kind in (end.error_message or "")
    if not retry:
        assert reply_of(exception(kind, message)).end.error_kind == error_kind
        return
    with pytest.raises(ProviderError) as raised:
        reply_of(exception(kind, message))
    assert (raised.value.kind, raised.value.retry) == (error_kind, True)


def test_an_error_of_the_connection_itself_is_said() -> None:
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "Out of order"}
    end = reply_of(event(*delta(0, text="Half")), frame(headers, {})).end
    assert end.error_message == "The server answered InternalError: Out of order"


def test_a_payload_that_is_no_json_is_said() -> None:
    (end,) = read_events([({":event-type": "messageStop"}, b"{")])
    assert isinstance(end, StreamEnd)
    assert (end.error_kind, "no JSON" in (end.error_message or "")) == ("provider", True)
