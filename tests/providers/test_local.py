"""A model that runs in process: what it needs, what it streams, and how it is left."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from op_jupyter.errors import RunError
from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEnd, StreamEvent
from op_jupyter.messages import AssistantMessage, Message, TextContent, ToolCall, ToolResultMessage, UserMessage
from op_jupyter.providers import Model, Request, ToolSpec, local, resolve
from op_jupyter.providers._model_files import DEFAULT_MODEL, is_downloaded

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("get_weather", "Return the weather in a city now.", CITY)
TIME = ToolSpec("get_time", "The current local time.", {"type": "object", "properties": {}})
QUESTION = UserMessage("What is the weather in Oslo?")
COUNT = UserMessage("Count from 1 to 300, in words.")


@pytest.fixture(scope="module")
def live() -> Model:
    """The default model, which is too large to be downloaded by a test."""
    if not is_downloaded(DEFAULT_MODEL):
        reason = f"the default model is not there: {local.DOWNLOAD}"
        pytest.fail(reason) if "CI" in os.environ else pytest.skip(reason)
    return resolve("local:")


def request(*messages: Message, tools: list[ToolSpec] | None = None, **rest: Any) -> Request:
    return Request(model="test", system=None, messages=list(messages), tools=tools or [], **rest)


def ask(model: Model, *messages: Message, **rest: Any) -> tuple[list[StreamEvent], StreamEnd]:
    """The events before the last, and the last."""
    *events, end = model.stream(request(*messages, **rest))
    assert isinstance(end, StreamEnd)
    assert not any(isinstance(event, StreamEnd) for event in events)
    return events, end


def block(events: list[StreamEvent]) -> TextContent | ToolCall:
    """The one block of a reply, which has begun, grown and ended."""
    start, end = events[0], events[-1]
    assert isinstance(start, BlockStart)
    assert isinstance(end, BlockEnd)
    assert all(isinstance(event, BlockDelta) for event in events[1:-1])
    assert isinstance(end.block, (TextContent, ToolCall))
    return end.block


def answered(result: str, *, is_error: bool = False) -> list[Message]:
    """The question about the weather, the call, and its result."""
    call = ToolCall("call_1", "get_weather", {"city": "Oslo"})
    return [
        QUESTION,
        AssistantMessage([call]),
        ToolResultMessage("call_1", "get_weather", [TextContent(result)], is_error=is_error),
    ]


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def is_idle() -> bool:
    return not any(thread.name == "op_jupyter local" for thread in threading.enumerate())


# -------------------------------------------------------------------- what a model needs


def test_a_default_model_that_is_not_there_says_how_to_download_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OP_JUPYTER_CACHE", str(tmp_path))
    with pytest.raises(RunError, match=r"python -m op_jupyter\.providers\.local") as caught:
        resolve("local:")
    assert caught.value.kind == "setup"


@pytest.mark.parametrize(("name", "reason"), [("nowhere.gguf", "No such file"), (".", "directory")])
def test_a_file_that_cannot_be_read_is_named(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"Cannot read the model {tmp_path}.*{reason}") as caught:
        resolve(f"local:{tmp_path / name}")
    assert caught.value.kind == "setup"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(RunError, match="is not a GGUF file"):
        resolve(f"local:{tmp_path / 'model.bin'}")


def test_a_model_is_named_after_its_file_and_not_loaded_before_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "tiny-q4.gguf").write_bytes(b"GGUF")
    assert str(resolve(f"local:{tmp_path / 'tiny-q4.gguf'}")) == "local:tiny-q4"


def test_the_default_model_is_found_by_the_name_that_is_shown(live: Model) -> None:
    assert resolve(str(live)).name == live.name


def test_a_damaged_file_is_an_error_and_other_models_go_on(live: Model, tmp_path: Path) -> None:
    with DEFAULT_MODEL.path.open("rb") as whole:
        (tmp_path / "cut.gguf").write_bytes(whole.read(20_000_000))
    (tmp_path / "noise.gguf").write_bytes(b"GGUF" + bytes(range(256)) * 1000)
    ask(live, UserMessage("Say hi"), options={"max_tokens": 1})
    for name in ("cut", "noise"):
        events, end = ask(resolve(f"local:{tmp_path / name}.gguf"), UserMessage("Say hi"))
        assert (events, end.stop_reason, end.error_kind) == ([], "error", "setup")
        assert end.error_message is not None
        assert end.error_message.startswith(f"{tmp_path / name}.gguf cannot be loaded")
        assert "\n" not in end.error_message
    assert ask(live, UserMessage("Say hi"), options={"max_tokens": 1})[1].stop_reason == "length"


# -------------------------------------------------------------------- what it streams


def test_text_arrives_piece_by_piece(live: Model) -> None:
    events, end = ask(live, UserMessage("What is the capital of France?"))
    deltas = [event.text for event in events if isinstance(event, BlockDelta)]
    assert len(deltas) > 3
    assert block(events) == TextContent("".join(deltas))
    assert "Paris" in "".join(deltas)
    assert (end.stop_reason, end.finish) == ("stop", "stop")
    assert end.usage.input + end.usage.cache_read > 10
    assert end.usage.output >= len(deltas)


def test_a_function_is_called_with_its_arguments(live: Model) -> None:
    events, end = ask(live, QUESTION, tools=[WEATHER, TIME])
    assert events[0] == BlockStart(0, ToolCall("call_1", "get_weather"))
    assert block(events) == ToolCall("call_1", "get_weather", {"city": "Oslo"})
    assert end.stop_reason == "tool_use"


def test_the_answer_is_given_from_the_result_and_streams_as_text(live: Model) -> None:
    events, end = ask(live, *answered("-3 °C, snow"), tools=[WEATHER, TIME])
    answer = block(events)
    assert isinstance(answer, TextContent)
    assert "-3" in answer.text
    assert "".join(event.text for event in events if isinstance(event, BlockDelta)) == answer.text
    assert end.stop_reason == "stop"
    assert end.usage.cache_read > end.usage.input


def test_an_error_of_a_function_is_told(live: Model) -> None:
    answer = block(ask(live, *answered("ValueError: no weather station in Oslo", is_error=True), tools=[WEATHER])[0])
    assert isinstance(answer, TextContent)
    assert "station" in answer.text


def test_calls_are_numbered_through_the_conversation(live: Model) -> None:
    messages = [
        *answered("-3 °C, snow"),
        AssistantMessage([TextContent("-3 °C, with snow.")]),
        UserMessage("And in Rome?"),
    ]
    call = block(ask(live, *messages, tools=[WEATHER])[0])
    assert call == ToolCall("call_2", "get_weather", {"city": "Rome"})


def test_a_required_pick_is_a_call(live: Model) -> None:
    assert isinstance(block(ask(live, UserMessage("Hello!"), tools=[WEATHER], tool_choice="required")[0]), ToolCall)


def test_a_named_pick_is_that_call(live: Model) -> None:
    choice = {"type": "function", "name": "get_time"}
    call = block(ask(live, QUESTION, tools=[WEATHER, TIME], tool_choice=choice)[0])
    assert call == ToolCall("call_1", "get_time", {})


def test_with_none_there_is_no_call(live: Model) -> None:
    assert isinstance(block(ask(live, QUESTION, tools=[WEATHER], tool_choice="none")[0]), TextContent)


def test_a_history_with_calls_goes_on_without_functions(live: Model) -> None:
    events, end = ask(live, *answered("-3 °C, snow"))
    assert isinstance(block(events), TextContent)
    assert end.stop_reason == "stop"


def test_arguments_that_were_cut_are_kept_as_text(live: Model) -> None:
    events, end = ask(live, QUESTION, tools=[WEATHER], options={"max_tokens": 12})
    call = block(events)
    assert isinstance(call, ToolCall)
    assert call.raw_arguments
    assert call.raw_arguments.startswith("{")
    assert (call.name, call.arguments, end.stop_reason) == ("get_weather", {}, "length")


def test_a_conversation_that_does_not_fit_is_an_error_of_that_kind(live: Model) -> None:
    events, end = ask(live, UserMessage("word " * 9000))
    assert (events, end.stop_reason, end.error_kind) == ([], "error", "context")
    assert "start a new one" in (end.error_message or "")


def test_an_option_that_is_not_understood_is_an_error_in_one_line(live: Model) -> None:
    events, end = ask(live, QUESTION, options={"max_tokens": "many"})
    assert (events, end.stop_reason, end.error_kind) == ([], "error", "provider")
    assert "max_tokens" in (end.error_message or "")
    assert "\n" not in (end.error_message or "")


def test_half_a_character_and_real_emoji_can_be_sent(live: Model) -> None:
    _, end = ask(live, UserMessage("Say \ud83d and 😀"), options={"max_tokens": 3})
    assert end.error_message is None


def test_two_requests_at_once_are_both_answered(live: Model) -> None:
    def capital(country: str) -> str:
        return str(block(ask(live, UserMessage(f"Capital of {country}?"))[0]))

    with ThreadPoolExecutor(2) as pool:
        italy, norway = pool.map(capital, ["Italy", "Norway"])
    assert "Rome" in italy
    assert "Oslo" in norway


# -------------------------------------------------------------------- how it is left


def abandoned(model: Model, asked: Request, until: Callable[[Iterator[StreamEvent]], object]) -> threading.Thread:
    """The thread that read the reply, which was left once `until` had seen enough of it."""
    seen = threading.Event()

    def read() -> None:
        stream = model.stream(asked)
        until(stream)
        seen.set()
        for _ in stream:
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    seen.wait()
    asked.on_abandon()
    return reader


def test_a_reply_that_nobody_wants_ends_and_the_next_is_made(live: Model) -> None:
    reader = abandoned(live, request(COUNT), lambda stream: [next(stream) for _ in range(3)])
    reader.join(1)
    assert not reader.is_alive()
    assert wait_for(is_idle, 5)
    assert ask(live, UserMessage("Say hi"), options={"max_tokens": 1})[1].stop_reason == "length"


def test_a_long_prompt_that_nobody_wants_is_not_read_to_its_end(live: Model) -> None:
    asked = request(UserMessage("word " * 8000))  # more than a minute
    reader = threading.Thread(target=list, args=(live.stream(asked),), daemon=True)
    reader.start()
    assert not wait_for(is_idle, 1)
    asked.on_abandon()
    reader.join(1)
    assert not reader.is_alive()
    assert wait_for(is_idle, 10)


def test_a_stream_that_is_closed_ends_the_generation(live: Model) -> None:
    stream = live.stream(request(COUNT))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert wait_for(is_idle, 5)


SCRIPT = """
import threading
from op_jupyter.messages import UserMessage
from op_jupyter.providers import Request, resolve
model, first = resolve("local:"), threading.Event()
def read():
    for event in model.stream(Request("test", None, [UserMessage("Count from 1 to 300, in words.")], [])):
        first.set()
threading.Thread(target=read, daemon=True).start()
first.wait()
"""


def test_nothing_is_printed_and_a_program_can_end_in_mid_reply(live: Model) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
