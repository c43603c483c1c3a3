"""What servers of Gemini stream, and what it is read as."""

from __future__ import annotations

import json
from typing import Any

import pytest

from op_jupyter.events import BlockDelta
from op_jupyter.messages import ImageContent, ServerContent, TextContent, ThinkingContent, ToolCall, Usage
from op_jupyter.providers._gemini_arguments import arguments_of
from op_jupyter.providers._gemini_events import read_events
from op_jupyter.providers._shared import ProviderError
from tests.providers.adapter import Reply
from tests.providers.gemini_wire import COUNTED, call, chunk, reply_of, text, thought

# -------------------------------------------------------------------- text and thoughts


def test_texts_that_follow_one_another_are_one_and_signatures_keep_their_places() -> None:
    reply = reply_of(
        thought("Hm. "),
        thought("So.", thoughtSignature="MA=="),
        text("It ", thoughtSignature="MQ=="),
        text(""),
        text("is 3."),
        text("", thoughtSignature="Mg=="),
    )
    assert reply.content == [
        ThinkingContent("Hm. So.", provider_data={"gemini": {"signed": [[4, 7, "MA=="]]}}),
        TextContent("It is 3.", {"gemini": {"signed": [[0, 3, "MQ=="], [8, 8, "Mg=="]]}}),
    ]
    assert [event.text for event in reply.events if isinstance(event, BlockDelta)] == ["Hm. ", "So.", "It ", "is 3."]


@pytest.mark.parametrize("part", [text("", thoughtSignature="MQ=="), {"thoughtSignature": "MQ=="}])
def test_a_signature_on_nothing_is_kept(part: dict[str, Any]) -> None:
    made, empty = reply_of(call("now"), part).content
    assert (made, empty) == (ToolCall("", "now"), TextContent("", {"gemini": {"signed": [[0, 0, "MQ=="]]}}))


@pytest.mark.parametrize("content", [{}, {"parts": None}, {"parts": []}, {"parts": [{}]}, None])
def test_a_chunk_of_nothing_is_nothing(content: Any) -> None:
    assert reply_of(text("3"), chunk(content=content), text(".")).content == [TextContent("3.")]


def test_a_response_that_is_wrapped_is_unwrapped() -> None:
    wrapped = [json.dumps({"response": chunk(text("3."), finish="STOP"), "traceId": "1"})]
    assert Reply(list(read_events(wrapped))).text == "3."


def test_only_the_first_of_several_candidates_is_read() -> None:
    assert reply_of(text("3"), chunk(text("4"), index=1, finishReason="SAFETY")).text == "3"


# -------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("said", "arguments", "raw"),
    [
        ({}, {}, None),
        ({"args": None}, {}, None),
        ({"args": {}}, {}, None),
        ({"args": {"a": [1, None]}}, {"a": [1, None]}, None),
        ({"args": [1, 2]}, {}, "[1,2]"),
        ({"args": "a"}, {}, '"a"'),
    ],
)
def test_a_call_may_have_no_arguments_and_no_id(said: dict[str, Any], arguments: Any, raw: str | None) -> None:
    reply = reply_of(call("add", **said), call("add", id="c2", **said))
    assert reply.content == [ToolCall("", "add", arguments, raw), ToolCall("c2", "add", arguments, raw)]
    assert reply.end.stop_reason == "tool_use"


def partial(path: str, more: bool = False, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path} | value | ({"willContinue": True} if more else {})


def test_arguments_may_come_value_by_value() -> None:
    reply = reply_of(
        text("Both."),
        call("add", "c2ln", id="c1", willContinue=True),
        call(partialArgs=[partial("$.to.name", True, stringValue="A")], willContinue=True),
        call(partialArgs=[partial("$.to.name", True, stringValue="d")], willContinue=True),
        call(partialArgs=[partial("$.to.name", stringValue="a"), partial("$.n", numberValue=2)], willContinue=True),
        call(),
        call(),
        call("now", willContinue=True),
        call(partialArgs=[partial("$.sure", boolValue=False)]),
    )
    assert reply.calls == [
        ToolCall("c1", "add", {"to": {"name": "Ada"}, "n": 2}, provider_data={"gemini": {"thoughtSignature": "c2ln"}}),
        ToolCall("", "now", {"sure": False}),
    ]


@pytest.mark.parametrize(
    ("partials", "arguments"),
    [
        ([], {}),
        ([partial("$.a", nullValue="NULL_VALUE")], {"a": None}),
        ([partial("$.a[0][0]", numberValue=1), partial("$.a[0][1]", numberValue=2)], {"a": [[1, 2]]}),
        ([partial("$.a[0].b", stringValue="x"), partial("$.a[1].b", stringValue="y")], {"a": [{"b": "x"}, {"b": "y"}]}),
        ([partial("$['a.b']['it\\'s']", numberValue=1)], {"a.b": {"it's": 1}}),
        ([partial('$["é"]', stringValue="x", more=True), partial('$["é"]', stringValue="y")], {"é": "xy"}),
        ([partial("$.a", stringValue="x"), partial("$.a", stringValue="y")], {"a": "y"}),
    ],
)
def test_each_value_has_its_place(partials: list[dict[str, Any]], arguments: dict[str, Any]) -> None:
    assert arguments_of(None, partials) == arguments


@pytest.mark.parametrize(
    "partials",
    [
        [partial("a", stringValue="x")],
        [partial("$.a..b", stringValue="x")],
        [partial("$[0]", stringValue="x")],
        [partial("$.a[7]", stringValue="x")],
        [partial("$.a[1].b", stringValue="x")],
        [partial("$.a", stringValue="x"), partial("$.a.b", stringValue="y")],
        [partial("$.a[0]", stringValue="x"), partial("$.a.b", stringValue="y")],
        [partial("$", stringValue="x")],
    ],
)
def test_a_value_without_a_place_makes_the_arguments_unreadable_and_ends_nothing(
    partials: list[dict[str, Any]],
) -> None:
    with pytest.raises(ValueError, match=r"path|place|object"):
        arguments_of(None, partials)
    (made,) = reply_of(call("add", partialArgs=partials)).calls
    assert (made.arguments, json.loads(made.raw_arguments or "")) == ({}, partials)


def test_whole_arguments_may_grow_and_stay_what_they_were() -> None:
    whole = {"a": {"b": 1}}
    assert arguments_of(whole, [partial("$.a.c", numberValue=2)]) == {"a": {"b": 1, "c": 2}}
    assert whole == {"a": {"b": 1}}


# -------------------------------------------------------------------- what the server ran


def test_what_the_server_ran_is_shown_and_not_called() -> None:
    code = {"language": "PYTHON", "code": "1 + 2", "id": "x1"}
    search = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1"}
    reply = reply_of({"thoughtSignature": "c2ln", "executableCode": code}, {"toolCall": search}, {"new": [1]})
    assert reply.content == [
        ServerContent("executableCode", code, {"gemini": {"type": "executableCode", "thoughtSignature": "c2ln"}}),
        ServerContent("GOOGLE_SEARCH_WEB", search, {"gemini": {"type": "toolCall"}}),
        ServerContent("new", [1], {"gemini": {"type": "new"}}),
    ]
    assert reply.end.stop_reason == "stop"


def test_what_is_said_of_the_whole_reply_stands_at_its_end() -> None:
    grounding = {"webSearchQueries": ["tea"]}
    reply = reply_of(chunk(text("Tea "), groundingMetadata={}), chunk(text("it is."), groundingMetadata=grounding))
    assert reply.content == [
        TextContent("Tea it is."),
        ServerContent("groundingMetadata", grounding, {"gemini": {"type": "groundingMetadata"}}),
    ]


def test_an_image_is_one_and_another_file_is_not() -> None:
    image, sound = {"mimeType": "image/png", "data": "iVBORw=="}, {"mimeType": "audio/wav", "data": "UklGRg=="}
    broken = {"mimeType": "image/png", "data": "iVB"}
    signed = {"inlineData": image, "thoughtSignature": "c2ln"}
    assert reply_of(signed, {"inlineData": sound}, {"inlineData": broken}).content == [
        ImageContent(b"\x89PNG", "image/png", {"gemini": {"thoughtSignature": "c2ln"}}),
        ServerContent("inlineData", sound, {"gemini": {"type": "inlineData"}}),
        ServerContent("inlineData", broken, {"gemini": {"type": "inlineData"}}),
    ]


# -------------------------------------------------------------------- the end


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"])
def test_a_reply_that_was_blocked_is_an_error_with_its_reason(finish: str) -> None:
    ratings = [{"category": "HARM_CATEGORY_HARASSMENT", "blocked": True}, {"category": "OTHER", "blocked": False}]
    end = reply_of(text("Well"), finish=finish, safetyRatings=ratings).end
    assert (end.stop_reason, end.error_kind, end.finish) == ("error", "filter", finish)
    assert end.error_message == f"The reply was blocked ({finish}): HARM_CATEGORY_HARASSMENT"
    end = reply_of(finish=finish, finishMessage="Against the policy.").end
    assert end.error_message == f"The reply was blocked ({finish}): Against the policy."


def test_a_blocked_prompt_is_an_error_with_its_reason() -> None:
    feedback = {"blockReason": "SAFETY", "safetyRatings": []}
    end = reply_of({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5}}, finish=None).end
    assert (end.stop_reason, end.error_kind, end.usage) == ("error", "filter", Usage(input=5))
    assert "SAFETY" in (end.error_message or "")


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "OTHER"])
def test_a_reply_that_went_wrong_keeps_what_was_said(finish: str) -> None:
    reply = reply_of(text("Well"), finish=finish, finishMessage="Malformed function call: add(")
    assert (reply.text, reply.end.stop_reason, reply.end.error_kind) == ("Well", "error", "provider")
    assert "add(" in (reply.end.error_message or "")


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"])
def test_a_reply_that_went_wrong_before_it_said_anything_may_be_asked_for_again(finish: str) -> None:
    with pytest.raises(ProviderError, match=finish) as raised:
        reply_of(finish=finish)
    assert raised.value.retry


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "CONTINUATION"])
def test_a_reply_that_was_cut_says_so(finish: str) -> None:
    reply = reply_of(call("add", willContinue=True), finish=finish)
    assert (reply.end.stop_reason, reply.end.finish) == ("length", finish)
    assert reply.calls == [ToolCall("", "add")]


def test_an_end_that_is_yet_to_be_invented_is_one() -> None:
    assert reply_of(text("3"), finish="NEW").end.stop_reason == "stop"
    assert reply_of(call("add"), finish="NEW").end.stop_reason == "tool_use"


def test_no_end_is_an_error() -> None:
    end = reply_of(text("Well"), finish=None).end
    assert (end.stop_reason, end.error_kind) == ("error", "connection")
    with pytest.raises(ProviderError, match="broke off") as raised:
        reply_of(finish=None)
    assert raised.value.retry


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "status": "RESOURCE_EXHAUSTED"}, "rate_limit"),
        ({"code": 400, "message": "The input token count exceeds the maximum"}, "context"),
        ({"code": 503, "status": "UNAVAILABLE"}, "provider"),
        ({"message": "Nobody knows"}, "provider"),
    ],
)
def test_an_error_in_mid_stream_keeps_its_kind(error: dict[str, Any], kind: str) -> None:
    reply = reply_of(text("Well"), {"error": error}, finish=None)
    assert (reply.text, reply.end.stop_reason, reply.end.error_kind) == ("Well", "error", kind)


def test_what_is_no_json_is_said() -> None:
    (end,) = read_events(["<html>"])
    assert "no JSON: <html>" in str(end)


# -------------------------------------------------------------------- usage


def test_the_latest_count_is_the_whole_one_and_a_null_erases_nothing() -> None:
    reply = reply_of(
        chunk(text("3"), usage={"promptTokenCount": 100, "candidatesTokenCount": 1, "cachedContentTokenCount": 80}),
        chunk(text("."), usage={"promptTokenCount": None, "candidatesTokenCount": 2, "thoughtsTokenCount": 40}),
        usage={"candidatesTokenCount": 3, "toolUsePromptTokenCount": 7},
    )
    assert reply.end.usage == Usage(input=27, output=43, cache_read=80, reasoning=40)


@pytest.mark.parametrize("usage", [None, {}, {"promptTokenCount": "many"}])
def test_a_count_that_is_none_is_no_error(usage: Any) -> None:
    assert reply_of(chunk(text("3"), usage=usage), usage=usage).end.usage == Usage()


def test_a_reply_that_broke_off_counts_what_it_had() -> None:
    assert reply_of(text("Well"), finish=None).end.usage == Usage(input=COUNTED["promptTokenCount"], output=3)
