"""Cassettes: what was said is kept, played back when the same is asked, and a difference is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from op_jupyter import RunError, Runtime
from op_jupyter.messages import ImageContent, TextContent
from op_jupyter.providers import Request
from op_jupyter.providers.replay import Recorder
from op_jupyter.testing import call, scripted
from tests.conversation import add


def record(path: Path, replies: list[Any], question: Any = "1 + 2?") -> None:
    recorder = Recorder()
    Runtime(model=recorder.wrap(scripted(replies))).exec(question, tools=[add])
    recorder.save(path)


def test_a_recorded_run_is_played_back_with_the_same_messages(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    recorder = Recorder()
    first = Runtime(model=recorder.wrap(scripted([["I add.", call("add", a=1, b=2)], "It is 3."])))
    first.exec("1 + 2?", tools=[add])
    recorder.save(file)
    second = Runtime(model=f"replay:{file}")
    assert second.exec("1 + 2?", tools=[add]) == "It is 3."
    assert first.last_run and second.last_run
    assert second.last_run.messages == first.last_run.messages


def test_images_survive_the_cassette(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    question: list[TextContent | ImageContent] = [
        TextContent("What is it?"),
        ImageContent(b"\xff\xd8\x00\xfe", "image/jpeg"),
    ]
    record(file, ["A cat."], question)
    assert Runtime(model=f"replay:{file}").exec(question, tools=[add]) == "A cat."


def test_a_cassette_can_be_replayed_again_and_again(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    record(file, ["3"])
    assert [Runtime(model=f"replay:{file}").exec("1 + 2?", tools=[add]) for _ in range(2)] == ["3", "3"]


def test_a_difference_names_the_place_and_both_values_and_says_how_to_record_again(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    record(file, [[call("add", a=1, b=2)], "3"])

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b + 1

    with pytest.raises(RunError) as caught:
        Runtime(model=f"replay:{file}").exec("1 + 2?", tools=[add])
    message = str(caught.value)
    assert "\n" not in message and "--record" in message
    assert 'request.messages[2].content[0].text was "3", and is now "4"' in message


def test_one_request_more_than_were_recorded_is_told(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    record(file, ["3"])
    runtime = Runtime(model=f"replay:{file}")
    with pytest.raises(RunError, match="one more request"):
        runtime.exec("1 + 2?", tools=[add], get_follow_up_messages=lambda: ["and 2 + 2?"])


def test_nested_runs_are_recorded_and_replayed_whatever_model_they_name(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    asked: list[str] = []

    def inner(request: Request) -> str:
        asked.append("inner")
        return "deep"

    def ask() -> str:
        return Runtime(model=scripted([inner])).exec("look", tools=[])

    recorder = Recorder()
    runtime = Runtime(model=recorder.wrap(scripted([[call("ask")], "done"])))
    runtime.exec("go", tools=[ask])
    recorder.save(file)
    assert len(json.loads(file.read_text())["runs"][0]) == 3
    again = Runtime(model=f"replay:{file}")
    assert again.exec("go", tools=[ask]) == "done"
    assert asked == ["inner"]


def test_a_provider_that_failed_fails_again_in_the_same_way(tmp_path: Path) -> None:
    from op_jupyter.events import stream_of
    from op_jupyter.messages import AssistantMessage
    from op_jupyter.providers import Model

    file = tmp_path / "c.json"
    failed = AssistantMessage([TextContent("half")], "error", error_message="Too many requests.")
    recorder = Recorder()
    with pytest.raises(RunError):
        Runtime(model=recorder.wrap(Model("x", "", lambda r: stream_of(failed, "rate_limit")))).exec("go", tools=[])
    recorder.save(file)
    with pytest.raises(RunError, match=r"^Too many requests\.$") as caught:
        Runtime(model=f"replay:{file}").exec("go", tools=[])
    assert caught.value.kind == "rate_limit"


def test_the_model_keeps_its_name_in_a_replay(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    record(file, ["3"])
    runtime = Runtime(model=f"replay:{file}")
    runtime.exec("1 + 2?", tools=[add])
    assert runtime.last_run and runtime.last_run.messages[-1].provider == "scripted"  # type: ignore[union-attr]


def test_several_runs_keep_what_was_said_in_one_file_and_a_repeated_one_replaces_its_own(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    record(file, ["3"])
    record(file, ["5"], "2 + 3?")
    record(file, ["three"])
    answers = [Runtime(model=f"replay:{file}").exec(question, tools=[add]) for question in ("1 + 2?", "2 + 3?")]
    assert answers == ["three", "5"]
    assert len(json.loads(file.read_text())["runs"]) == 2


def test_a_model_that_raises_fails_again_in_the_replay(tmp_path: Path) -> None:
    file = tmp_path / "c.json"

    def ask() -> str:
        return Runtime(model=scripted([RunError("No credit left.", kind="quota")])).exec("inner", tools=[])

    recorder = Recorder()
    Runtime(model=recorder.wrap(scripted([[call("ask")], "I see."]))).exec("go", tools=[ask])
    recorder.save(file)
    assert Runtime(model=f"replay:{file}").exec("go", tools=[ask]) == "I see."


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"{}", b'{"format": 99, "runs": []}', b"[]"])
def test_a_file_that_is_no_cassette_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(RunError, match="not a cassette"):
        Runtime(model=f"replay:{tmp_path / 'c.json'}").exec("go", tools=[])
