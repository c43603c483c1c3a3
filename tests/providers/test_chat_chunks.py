"""The many ways in which servers write the chunks of a chat completion, recorded ones among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from op_jupyter.events import BlockEnd, BlockStart
from op_jupyter.messages import ToolCall, Usage
from op_jupyter.providers._chat_chunks import read_chunks
from tests.providers.adapter import Reply
from tests.providers.chat_wire import CALL_NOW, FINISH, call_delta, chunk, reply_of


def made(calls: Iterable[ToolCall]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(call.id, call.name, call.arguments) for call in calls]


TWO: list[tuple[str, str, dict[str, Any]]] = [("c1", "add", {"a": 1}), ("c2", "now", {})]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [
                {"index": 0, "id": "c1", "name": "add", "arguments": ""},
                {"index": 1, "id": "c2", "name": "now", "arguments": ""},
                {"index": 0, "arguments": '{"a":'},
                {"index": 1, "arguments": "{}"},
                {"index": 0, "arguments": " 1}"},
            ],
            id="mixed together",
        ),
        pytest.param(
            [
                {"index": 1, "id": "c1", "name": "add", "arguments": '{"a": 1}'},
                {"index": 2, "id": "c2", "name": "now", "arguments": "{}"},
            ],
            id="counted from 1",
        ),
        pytest.param(
            [
                {"index": 0, "id": "c1", "name": "add", "arguments": '{"a"'},
                {"index": 0, "arguments": ": 1}"},
                {"index": 0, "id": "c2", "name": "now", "arguments": "{"},
                {"index": 0, "arguments": "}"},
            ],
            id="one index for two",
        ),
        pytest.param(
            [
                {"id": "c1", "name": "add", "arguments": '{"a"'},
                {"arguments": ": 1}"},
                {"id": "c2", "name": "now", "arguments": "{}"},
            ],
            id="no index",
        ),
        pytest.param(
            [
                {"id": "c1", "name": "add", "arguments": '{"a"'},
                {"id": "c1", "name": "add", "arguments": ": 1}"},
                {"id": "c2", "name": "now", "arguments": None},
            ],
            id="no index, id and name repeated",
        ),
        pytest.param(
            [
                {"index": 0, "id": "c1", "arguments": '{"a"'},
                {"index": 0, "name": "add", "arguments": ": 1}"},
                {"index": 1, "id": "c2", "name": "now", "arguments": "{}"},
            ],
            id="a name that arrives late",
        ),
        pytest.param(
            [
                {"index": 0, "id": "c1", "name": "add", "arguments": {"a": 1}},
                {"index": 1, "id": "c2", "name": "now", "arguments": dict[str, Any]()},
            ],
            id="arguments as an object",
        ),
        pytest.param(
            [
                {"index": 0, "id": "c1", "name": "add", "arguments": "{}"},
                {"index": 0, "id": "", "name": "", "arguments": '{"a": 1}'},
                {"index": 1, "id": "c2", "name": "now"},
                {"index": 1, "id": "", "name": None, "arguments": ""},
            ],
            id="an empty object first, empty ids and names later",
        ),
    ],
)
def test_calls_come_out_right_however_their_deltas_are_numbered(deltas: list[dict[str, Any]]) -> None:
    reply = reply_of(*(call_delta(**delta) for delta in deltas), FINISH)
    assert made(reply.calls) == TWO
    assert reply.end.stop_reason == "tool_use"


def test_calls_without_any_id_are_told_apart_by_their_names() -> None:
    reply = reply_of(call_delta(name="add", arguments='{"a": 1}'), call_delta(name="now", arguments="{}"), FINISH)
    assert made(reply.calls) == [("", "add", {"a": 1}), ("", "now", {})]


def test_an_empty_delta_makes_no_call() -> None:
    reply = reply_of(chunk({"tool_calls": [{"index": 0, "function": {"arguments": ""}}, None]}), chunk({}, "stop"))
    assert (reply.content, reply.end.stop_reason) == ([], "stop")


def test_chunks_may_be_empty_in_every_way() -> None:
    odd: list[Any] = [
        {"choices": None},
        {"choices": []},
        {},
        None,
        "ping",
        chunk(None),
        chunk({"content": None, "tool_calls": None}),
    ]
    reply = reply_of(*odd, chunk({"content": "Hello"}), {"choices": [], "usage": None}, chunk({}, "stop"))
    assert (reply.text, reply.end.stop_reason) == ("Hello", "stop")


def test_a_second_choice_is_not_mixed_in() -> None:
    second = chunk({"content": "Bonjour"})
    second["choices"][0]["index"] = 1
    assert reply_of(chunk({"content": "Hello"}), second, chunk({}, "stop")).text == "Hello"


@pytest.mark.parametrize(
    ("finish", "with_call", "stop_reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_use"),
        ("tool_calls", True, "tool_use"),
        ("function_call", True, "tool_use"),
        ("length", False, "length"),
        ("length", True, "length"),
        ("eos", False, "stop"),
        ("eos", True, "tool_use"),
        (None, True, "tool_use"),
        (None, False, "stop"),
    ],
)
def test_what_the_model_sent_decides_how_it_ended(finish: str | None, with_call: bool, stop_reason: str) -> None:
    end = reply_of(CALL_NOW if with_call else chunk({"content": "Hello"}), chunk({}, finish)).end
    assert (end.stop_reason, end.finish) == (stop_reason, finish)


def test_a_call_that_was_cut_keeps_what_was_written() -> None:
    reply = reply_of(call_delta(index=0, id="c1", name="add", arguments='{"a": 1, "b'), chunk({}, "length"))
    assert [(call.arguments, call.raw_arguments) for call in reply.calls] == [({}, '{"a": 1, "b')]


def test_a_refusal_is_an_error_with_its_reason() -> None:
    end = reply_of(chunk({"refusal": "I cannot "}), chunk({"refusal": "help with that."}), chunk({}, "stop")).end
    assert (end.stop_reason, end.error_kind) == ("error", "filter")
    assert "I cannot help with that." in (end.error_message or "")


def test_a_content_filter_is_an_error() -> None:
    end = reply_of(chunk({"content": "Well, "}), chunk({}, "content_filter")).end
    assert (end.stop_reason, end.error_kind, end.finish) == ("error", "filter", "content_filter")


def test_text_and_thinking_that_alternate_keep_their_order() -> None:
    reply = reply_of(
        chunk({"reasoning_content": "Hm. ", "content": ""}),
        chunk({"reasoning_content": "Yes.", "content": None}),
        chunk({"content": "Let me see. "}),
        CALL_NOW,
        chunk({"content": "Then "}),
        chunk({"content": "on."}),
        FINISH,
    )
    assert [block.kind for block in reply.content] == ["thinking", "text", "tool_call", "text"]
    assert reply.text == "Let me see. Then on."
    steps = [(event.kind, event.index) for event in reply.events if isinstance(event, BlockStart | BlockEnd)]
    assert steps[:5] == [
        ("block_start", 0),
        ("block_end", 0),
        ("block_start", 1),
        ("block_end", 1),
        ("block_start", 2),
    ]


def test_cached_and_reasoning_tokens_are_not_counted_twice() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": None},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    end = reply_of(chunk({"content": "Hello"}, "stop"), {"choices": [], "usage": usage}).end
    assert end.usage == Usage(input=20, output=50, cache_read=80, reasoning=40)
    assert end.usage.total == 150


def test_reasoning_that_a_server_counts_only_in_the_total_is_output_too() -> None:
    usage: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": 15, "total_tokens": 145}
    usage["completion_tokens_details"] = {"reasoning_tokens": 30}
    end = reply_of(chunk({"content": "Hello"}, "stop"), {"choices": [], "usage": usage}).end
    assert (end.usage.output, end.usage.reasoning, end.usage.total) == (45, 30, 145)


def test_half_a_character_in_a_chunk_is_replaced_and_a_whole_one_is_not() -> None:
    texts = [r'{"choices":[{"delta":{"content":"half \ud83d, whole \ud83d\ude00"},"finish_reason":"stop"}]}']
    assert Reply(list(read_chunks(texts))).text == "half \ufffd, whole 😀"


def test_what_is_no_json_is_an_error_that_shows_it() -> None:
    end = Reply(list(read_chunks(["<html>oops"]))).end
    assert "<html>oops" in (end.error_message or "")
