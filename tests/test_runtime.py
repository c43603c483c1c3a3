"""What `Runtime` takes and refuses, and what it tells whoever listens."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from matplotlib.figure import Figure

from op_jupyter import Run, RunError, Runtime, agentic_function, current, default_runtime, function
from op_jupyter.events import AgentEvent
from op_jupyter.messages import ImageContent
from op_jupyter.providers import Request
from op_jupyter.providers.replay import Recorder
from op_jupyter.record import fold
from op_jupyter.testing import call, scripted


@pytest.mark.parametrize("settings", [{"timeout": 0}, {"timeout": -1}, {"max_retries": -1}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Runtime(**settings)


@pytest.mark.parametrize("content", ["", "  \n", []])
def test_an_empty_question_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match="nothing to ask"):
        Runtime(model=scripted(["x"])).exec(content)


def test_content_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        Runtime(model=scripted(["x"])).exec([3])


def test_a_question_may_hold_texts_and_images() -> None:
    seen: list[Request] = []
    image = ImageContent(b"png", "image/png")
    Runtime(model=scripted([lambda r: seen.append(r) or "ok"])).exec(["What is it?", image])
    assert [block.kind for block in seen[0].messages[0].content] == ["text", "image"]


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_an_image_may_be_a_path_bytes_a_figure_or_an_object_of_pillow(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(PNG)
    figure = Figure()
    drawn = [tmp_path / "p.png", PNG, b"\xff\xd8\xff jpeg", figure, figure.subplots(), PIL.Image.new("RGB", (2, 2))]
    seen: list[Request] = []
    Runtime(model=scripted([lambda r: seen.append(r) or "ok"])).exec(["What is it?", *drawn])
    images = [block for block in seen[0].messages[0].content if isinstance(block, ImageContent)]
    assert [image.mime_type for image in images] == ["image/png", "image/png", "image/jpeg", *["image/png"] * 3]
    assert images[0].data == images[1].data == PNG


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Path("nowhere.png"), "'nowhere.png' cannot be read: No such file"),
        (Path(__file__), "is no PNG, JPEG, GIF or WebP image"),
        (b"text", "What is given as bytes is no PNG"),
    ],
)
def test_an_image_that_is_none_is_refused_with_the_reason(item: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Runtime(model=scripted(["x"])).exec(["What is it?", item])


def tool() -> None:
    """Nothing."""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"content": None}, "content is a text, or a list of texts and images, and not of type NoneType"),
        ({"content": Path("p.png")}, "content is a text, or a list of texts and images"),
        ({"tools": tool}, r"tools takes a list of functions, not .*write tools=\[…\]"),
        ({"tools": "tool"}, "tools takes a list of functions, not 'tool'"),
        ({"history": Run(run_id="a")}, r"history takes a list of messages, such as run\.messages, not Run"),
        ({"tools": [tool], "tool_choice": "tool"}, r"'type': 'function', 'name': ….*, and not 'tool'\. .* are tool"),
        ({"tools": [tool], "tool_choice": {"name": ["tool"]}}, r"'name': ….*, and not {'name': \['tool'\]}"),
        ({"model": 5}, "model takes a text, provider:model, or a Model, not 5"),
        ({"options": ["fast"]}, r"options takes a dict of settings of the provider, not \['fast'\]"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_in_words(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Runtime(model=scripted(["x"])).exec(**{"content": "go", **arguments})


def test_tools_are_on_by_default_and_the_empty_list_turns_them_off() -> None:
    @function
    def known() -> None:
        """Known."""

    menus: list[list[str]] = []
    runtime = Runtime(model=scripted([lambda r: menus.append([t.name for t in r.tools]) or "ok"] * 3))
    runtime.exec("a")
    runtime.exec("b", tools=[])
    Runtime(model=runtime.model, tools=[known]).exec("c")
    assert "known" in menus[0] and menus[1:] == [[], ["known"]]


def test_two_tools_of_one_name_are_refused_before_anything_is_asked() -> None:
    def one() -> None: ...

    with pytest.raises(ValueError, match="one"):
        Runtime(model=scripted([])).exec("go", tools=[one, one])


def test_options_reach_the_provider_those_of_the_call_over_those_of_the_runtime() -> None:
    seen: list[Request] = []
    runtime = Runtime(
        model=scripted([lambda r: seen.append(r) or "ok"]), options={"temperature": 0, "seed": 1}, system="Be brief."
    )
    runtime.exec("go", options={"seed": 2})
    assert seen[0].options == {"temperature": 0, "seed": 2} and seen[0].system == "Be brief."


def test_without_a_model_one_error_lists_the_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OP_JUPYTER_CACHE", str(tmp_path))
    with pytest.raises(RunError) as caught:
        Runtime().exec("go")
    assert caught.value.kind == "setup"
    for way in ("OPENAI_API_KEY", "OP_JUPYTER_MODEL", "python -m op_jupyter.providers.local"):
        assert way in str(caught.value)


def test_a_missing_sdk_is_one_line_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("openai", "xllamacpp"):
        monkeypatch.setitem(sys.modules, package, None)
    for model, extra in (("openai:gpt", "op_jupyter[openai]"), ("local:", "op_jupyter[local]")):
        with pytest.raises(RunError) as caught:
            Runtime(model=model).exec("go", tools=[])
        assert extra in str(caught.value) and caught.value.kind == "setup"


def test_every_event_is_a_line_of_json_in_the_file_that_the_variable_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(path))
    events: list[AgentEvent] = []
    Runtime(model=scripted(["Hello you."])).exec("Hi", tools=[], on_event=events.append)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == [event.kind for event in events]
    Runtime(model=scripted(["More."])).exec("Hi", tools=[])
    assert len(path.read_text().splitlines()) > len(lines)


def test_an_events_file_that_cannot_be_written_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(tmp_path / "no" / "such" / "folder"))
    with pytest.raises(RunError, match="OP_JUPYTER_EVENTS"):
        Runtime(model=scripted(["x"])).exec("Hi", tools=[])


def test_what_a_listener_steers_stands_behind_the_event_that_it_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(tmp_path / "events"))
    runtime = Runtime(model=scripted(["a", "b"]))
    runtime.exec("go", on_event=lambda event: runtime.steer("more") if event.kind == "agent_start" else None)
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "events").read_text().splitlines()]
    assert kinds[:3] == ["agent_start", "steering", "turn_start"]


def test_the_same_events_fold_to_the_same_record() -> None:
    events: list[AgentEvent] = []

    def ask() -> str:
        return runtime.exec("inner", tools=[])

    runtime = Runtime(model=scripted([["Let me ask.", call("ask")], "inner", "outer"]))
    runtime.exec("go", tools=[ask], on_event=events.append)
    again = Run(run_id=events[0].run_id)
    for event in events:
        fold(again, event)
    assert again == runtime.last_run
    assert Run.from_json(again.to_json()) == again


def test_a_text_that_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="Run"):
        Run.from_json("{}")


def test_the_record_that_the_front_end_is_tested_with_is_one() -> None:
    text = (Path(__file__).parent / "fixtures" / "runs" / "everything.json").read_text()
    assert json.loads(Run.from_json(text).to_json()) == json.loads(text)


def test_no_key_is_in_what_is_written_whoever_says_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_environment, passed = "environment-key", "passed-key-123"
    monkeypatch.setenv("OPENAI_API_KEY", in_environment)
    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(tmp_path / "events.jsonl"))
    both = f"{in_environment} {passed}"

    def tell(text: str) -> str:
        return text

    recorder = Recorder()
    model = recorder.wrap(scripted([[both, call("tell", text=both)], both]))
    runtime = Runtime(model=model, api_key=passed, system=both, options={"note": both})
    runtime.exec(both, tools=[tell], get_steering_messages=lambda: [])
    recorder.save(tmp_path / "c.json")
    assert runtime.last_run
    for text in (
        (tmp_path / "events.jsonl").read_text(),
        (tmp_path / "c.json").read_text(),
        runtime.last_run.to_json(),
    ):
        assert "[redacted]" in text and in_environment not in text and passed not in text


def test_halves_of_characters_do_not_keep_a_run_from_being_written(tmp_path: Path) -> None:
    half = "a\ud83d b"
    recorder = Recorder()
    runtime = Runtime(model=recorder.wrap(scripted([[half, call("f\udc00")], half])))
    runtime.exec(half, tools=[])
    recorder.save(tmp_path / "c.json")
    assert runtime.last_run and "\ufffd" in runtime.last_run.text
    assert Run.from_json(runtime.last_run.to_json()) == runtime.last_run


def test_an_argument_that_aexec_does_not_know_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="aexec takes no argument 'max_rounds'"):
        asyncio.run(Runtime(model=scripted(["x"])).aexec("go", max_rounds=3))  # type: ignore[call-overload]


def test_a_runtime_of_ones_own_can_stand_in_for_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_default_runtime", None)
    assert default_runtime() is default_runtime()
    current.set_default_runtime(Runtime(model=scripted(["It rains."])))

    @agentic_function
    def weather(runtime: Runtime) -> str:
        return runtime.exec("How is it?")

    assert weather() == "It rains."  # type: ignore[call-arg]


@pytest.mark.parametrize("send", [Runtime.steer, Runtime.follow_up])
def test_a_message_that_is_no_text_is_refused_in_words(send: Any) -> None:
    with pytest.raises(TypeError, match="A message is a text, not NoneType"):
        send(Runtime(model=scripted(["x"])), None)


@pytest.mark.parametrize("timeout", [float("inf"), 1e12])
def test_a_timeout_without_end_is_a_day_since_sockets_take_no_more(timeout: float) -> None:
    assert Runtime(model=scripted(["x"]), timeout=timeout).connection.timeout == 86_400
