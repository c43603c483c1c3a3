"""What is replayed is valid, whatever happened before."""

from __future__ import annotations

import pytest

from op_jupyter.history import UNANSWERED, replayable
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)


def calls(*ids: str) -> AssistantMessage:
    return AssistantMessage([ToolCall(id, "f", {}) for id in ids], "tool_use")


def result(id: str, text: str = "ok") -> ToolResultMessage:
    return ToolResultMessage(id, "f", [TextContent(text)])


def test_what_is_valid_stays_as_it_is() -> None:
    messages: list[Message] = [
        UserMessage("go"),
        calls("1", "2"),
        result("1"),
        result("2"),
        AssistantMessage([TextContent("done")]),
        UserMessage("more"),
    ]
    assert replayable(messages) == messages


def test_a_call_that_nobody_answered_is_answered_in_its_place() -> None:
    repaired = replayable([UserMessage("go"), calls("1", "2", "3"), result("3"), UserMessage("more")])
    assert [getattr(message, "tool_call_id", message.kind) for message in repaired] == [
        "user",
        "assistant",
        "1",
        "2",
        "3",
        "user",
    ]
    assert isinstance(repaired[2], ToolResultMessage) and repaired[2].is_error and repaired[2].text


def test_a_history_that_ends_on_a_call_is_repaired_too() -> None:
    repaired = replayable([UserMessage("go"), calls("1")])
    assert [message.kind for message in repaired] == ["user", "assistant", "tool_result"]


def test_results_stand_in_the_order_of_their_calls_and_before_the_text_that_follows() -> None:
    steering = UserMessage("stop", "steering")
    repaired = replayable([UserMessage("go"), calls("1", "2"), result("2"), steering, result("1")])
    assert repaired[2:] == [result("1"), result("2"), steering]


def test_a_result_without_its_call_is_left_out_and_a_second_one_too() -> None:
    repaired = replayable([result("0"), UserMessage("go"), calls("1"), result("1"), result("1", "again")])
    assert repaired == [UserMessage("go"), calls("1"), result("1")]


def test_results_of_a_repeated_id_stay_with_their_own_message() -> None:
    messages: list[Message] = [UserMessage("go"), calls("1"), result("1", "a"), calls("1"), result("1", "b")]
    assert replayable(messages) == messages


@pytest.mark.parametrize("id", ["c", ""])
def test_calls_of_one_id_have_each_the_result_that_was_theirs(id: str) -> None:
    repaired = replayable([UserMessage("go"), calls(id, id, id), result(id, "1"), result(id, "2")])
    _, message, *answers = repaired
    assert isinstance(message, AssistantMessage)
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == 3 and all(ids)
    assert [answer.tool_call_id for answer in answers if isinstance(answer, ToolResultMessage)] == ids
    assert [answer.text for answer in answers if isinstance(answer, ToolResultMessage)] == ["1", "2", UNANSWERED]
    assert replayable(repaired) == repaired


def test_an_id_that_is_made_up_is_not_one_that_there_is() -> None:
    results = [result(id, text) for id, text in (("c", "1"), ("c_2", "2"), ("c", "3"), ("c_2", "4"))]
    _, message, *answers = replayable([UserMessage("go"), calls("c", "c_2", "c", "c_2"), *results])
    assert isinstance(message, AssistantMessage)
    assert len({call.id for call in message.tool_calls}) == 4
    assert [getattr(answer, "text", "") for answer in answers] == ["1", "2", "3", "4"]


def test_blank_blocks_are_left_out_and_messages_that_are_blank_altogether() -> None:
    messages: list[Message] = [
        UserMessage([TextContent("  "), TextContent("go")]),
        AssistantMessage([]),
        AssistantMessage([TextContent("\n"), ToolCall("1", "f", {})]),
        result("1"),
        AssistantMessage([TextContent(" "), ThinkingContent("")]),
        UserMessage(" "),
    ]
    assert replayable(messages) == [UserMessage("go"), AssistantMessage([ToolCall("1", "f", {})]), result("1")]


def test_what_is_signed_or_redacted_is_not_blank_and_neither_is_an_image() -> None:
    signed = AssistantMessage(
        [
            TextContent("", provider_data={"gemini": {"signature": "x"}}),
            ThinkingContent("", provider_data={"anthropic": {"signature": "y"}}),
            ThinkingContent("", redacted=True),
            ImageContent(b"", "image/png"),
        ]
    )
    assert replayable([UserMessage("go"), signed]) == [UserMessage("go"), signed]


def test_a_conversation_that_begins_in_its_middle_has_a_person_speak_first() -> None:
    reply = AssistantMessage([TextContent("It is 3.")])
    first, second = replayable([reply])
    assert isinstance(first, UserMessage) and first.text and second == reply
