"""What a person types into an agent cell, and what comes of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output

from op_jupyter import Run
from op_jupyter.testing import call
from tests.notebook.conftest import MakeCassette
from tests.providers.adapter import KEY, wait_for
from tests.providers.chat_wire import OpenAIChat
from tests.providers.wire_server import Answer, WireServer

SETUP = """
from op_jupyter import function

@function
def add(a: int, b: int) -> int:
    "Add two numbers."
    print("adding")
    return a + b

def sub(a: int, b: int) -> int:
    return a - b

class Thing:
    pass
"""


RUN = Run(run_id="r", error="some words " * 30)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def run(shell: InteractiveShell, cell: str) -> CapturedIO:
    with capture_output() as captured:
        shell.run_cell(cell)
    return captured


def ask(shell: InteractiveShell, line: str, text: str) -> CapturedIO:
    return run(shell, f"%%agent {line}\n{text}\n")


@pytest.fixture
def ready(shell: InteractiveShell) -> InteractiveShell:
    shell.run_cell(SETUP)
    return shell


def test_the_answer_is_bound_and_the_run_is_shown_once_in_every_form(
    ready: InteractiveShell, cassette: MakeCassette
) -> None:
    file = cassette("1 + 2?", [[call("add", a=1, b=2)], "It is 3."], tools=[add])
    shown = ask(ready, f"--model replay:{file} --tools add", "1 + 2?")
    assert ready.user_ns["_agent"] == "It is 3."
    (output,) = shown.outputs
    assert set(output.data) == {"application/vnd.op-jupyter.run+json", "text/html", "text/plain"}
    assert "It is 3." in output.data["text/plain"] and "add(a=1, b=2)" in output.data["text/plain"]
    # what the function prints is in its card and nowhere else
    assert not shown.stdout and "adding" in output.data["text/html"]


def test_the_answer_can_be_given_a_name_and_used_in_a_later_cell(
    ready: InteractiveShell, cassette: MakeCassette
) -> None:
    file = cassette("Say 7", ["7"])
    ask(ready, f"--model replay:{file} --tools '' --out seven", "Say 7")
    ready.run_cell("product = int(seven) * 6")
    assert ready.user_ns["product"] == 42


def test_tools_named_are_exactly_those_decorated_or_not(ready: InteractiveShell, cassette: MakeCassette) -> None:
    def sub(a: int, b: int) -> int:
        return a - b

    file = cassette("3 - 1?", [[call("sub", a=3, b=1)], "2"], tools=[sub])
    ask(ready, f"--model replay:{file} --tools sub", "3 - 1?")
    assert ready.user_ns["_agent"] == "2"


def test_names_in_braces_are_replaced_when_they_are_defined_and_nothing_else_is(
    ready: InteractiveShell, cassette: MakeCassette
) -> None:
    ready.user_ns.update(city="Oslo {year}", year=2013, table=[{"a": 1}])
    expanded = 'In Oslo {year}, 2013: {unknown} {"a": 1} {x:>3} {year.real} {Out[3]} {city} [{"a": 1}]'
    file = cassette(expanded, ["ok"])
    ask(
        ready,
        f"--model replay:{file} --tools ''",
        'In {city}, {year}: {unknown} {"a": 1} {x:>3} {year.real} {Out[3]} {{city}} {table}',
    )
    assert ready.user_ns["_agent"] == "ok"


def test_max_iterations_and_tool_choice_reach_the_run(ready: InteractiveShell, cassette: MakeCassette) -> None:
    named: Any = {"type": "function", "name": "add"}
    file = cassette("go", [["so far", call("add", a=1, b=2)]], tools=[add], max_iterations=1, tool_choice=named)
    shown = ask(ready, f"--model replay:{file} --tools add --max-iterations 1 --tool-choice add", "go")
    assert ready.user_ns["_agent"] == "so far"
    assert "Ended after 1 round," in shown.outputs[0].data["text/plain"]


def test_a_recorded_cell_replays_without_its_model(
    ready: InteractiveShell, cassette: MakeCassette, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cassette("1 + 2?", [[call("add", a=1, b=2)], "It is 3."], tools=[add])
    first = ask(ready, f"--model replay:{file} --tools add --record deep/down/new.json", "1 + 2?")
    Path(file).unlink()
    monkeypatch.setenv("OP_JUPYTER_REPLAY", "1")
    second = ask(ready, "--model openai:gpt --tools add --record deep/down/new.json", "1 + 2?")
    assert first.outputs[0].data == second.outputs[0].data


def test_a_failed_run_leaves_the_cassette_as_it_was(ready: InteractiveShell, cassette: MakeCassette) -> None:
    file = cassette("1 + 2?", ["3"])
    before = Path(file).read_text()
    ask(ready, f"--model replay:{file} --tools '' --record {file}", "something else")
    assert Path(file).read_text() == before and list(Path().glob(".c.json*")) == []


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ('--tools "add', "hi", "UsageError: The options cannot be read: No closing quotation"),
        ("--record '' --model replay:c.json", "hi", "UsageError: --record takes the name of a file, not ''"),
        ("--record . --model replay:c.json", "hi", "UsageError: --record takes the name of a file, not '.'"),
        ("--frobnicate", "hi", "UsageError: unrecognized arguments: --frobnicate"),
        ("--max-iterations many", "hi", "invalid int value: 'many'"),
        ("--max-iterations 0", "hi", "UsageError: --max-iterations takes a number from 1, not 0"),
        ("--tools add,nope", "hi", "UsageError: There is no function 'nope' in this notebook. There are:"),
        (
            "--tool-choice nope --model replay:c.json",
            "hi",
            "UsageError: tool_choice names 'nope', which is not on the menu. The functions are add.",
        ),
        ("--tools Thing --model replay:c.json", "hi", "Thing'> is a class, not a tool"),
        ("--out class", "hi", "UsageError: --out takes a name, not 'class'"),
        ("--out 3x", "hi", "UsageError: --out takes a name, not '3x'"),
        ("", "   ", "UsageError: There is nothing to ask"),
        ("--model gpt-5", "hi", "RunError: There is no provider 'gpt-5': a model is named provider:model"),
        ("--model openai:gpt-5", "hi", "set OPENAI_API_KEY"),
        ("--model replay:none.json", "hi", "RunError: There is no cassette 'none.json'. Record it"),
        ("--model replay:text.txt", "hi", "RunError: 'text.txt' is not a cassette of op_jupyter."),
        ("--model local:none.gguf", "hi", "none.gguf"),
        ("--model local:text.txt", "hi", "text.txt"),
        ("--tools '' --model replay:c.json", "2 + 2?", 'content[0].text was "1 + 2?", and is now "2 + 2?"'),
    ],
)
def test_bad_input_is_one_clear_line_and_changes_nothing(
    ready: InteractiveShell, cassette: MakeCassette, line: str, text: str, said: str
) -> None:
    cassette("1 + 2?", ["3"])
    Path("text.txt").write_text("hello")
    files = sorted(Path().rglob("*.json"))
    shown = ask(ready, line, text)
    lines = [*shown.stdout.splitlines(), *shown.stderr.splitlines()]
    assert len(lines) == 1 and said in lines[0], lines
    assert "_agent" not in ready.user_ns and sorted(Path().rglob("*.json")) == files


def test_a_key_in_the_environment_is_in_nothing_that_is_written(
    ready: InteractiveShell, cassette: MakeCassette, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "a-very-secret-key"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OP_JUPYTER_EVENTS", str(tmp_path / "events.jsonl"))

    def peek() -> str:
        return f"the key is {key}"

    file = cassette("the key?", [[call("peek")], "hidden"], tools=[peek])
    ready.user_ns["peek"] = peek
    shown = ask(ready, f"--model replay:{file} --tools peek --record again.json", "the key?")
    assert ready.user_ns["_agent"] == "hidden"
    written = [Path(name).read_text() for name in ("events.jsonl", "again.json", file)]
    assert all(key not in text for text in [*written, str(shown.outputs[0].data), shown.stdout])
    assert "[redacted]" in written[0]


OUTPUTS = """
import asyncio, threading, time
from IPython.display import display
from op_jupyter import Runtime, function
from op_jupyter.testing import call, scripted

async def in_coroutine(name: str) -> str:
    print("coroutine", name)
    await asyncio.sleep(0.01)
    print("coroutine", name, "again")
    return name

async def both() -> list[str]:
    def ask(name):
        runtime = Runtime(model=scripted([[call("in_coroutine", name=name)], name]))
        return runtime.aexec(name, tools=[in_coroutine])
    return await asyncio.gather(ask("a"), ask("b"))

@function(timeout=0.05)
def too_slow() -> str:
    "Slow."
    print("before")
    time.sleep(0.5)
    print("after")
    return "late"

runtime = Runtime(model=scripted([[call("both"), call("too_slow")], "ok"]))
runtime.capture = get_ipython().find_cell_magic("agent").__self__.runtime.capture
"""


def test_what_functions_write_is_in_their_cards_also_from_coroutines_side_by_side_and_threads(
    shell: InteractiveShell,
) -> None:
    assert run(shell, OUTPUTS).stderr == ""
    shown = run(shell, "runtime.exec('go', tools=[both, too_slow]);\nprint('in the cell')")
    assert shown.stdout == "in the cell\n"
    last = shell.user_ns["runtime"].last_run
    written = {
        child.text: [output["text"] for step in child.steps if step.kind == "call" for output in step.output]
        for child in last.children["call_1"]
    }
    assert written == {name: [f"coroutine {name}\ncoroutine {name} again\n"] for name in ("a", "b")}
    (slow,) = [step for step in last.steps if step.kind == "call" and step.call.name == "too_slow"]
    assert slow.output[0]["text"] == "before\n" and "still be running" in slow.result.text
    assert run(shell, "print('later')").stdout == "later\n"
    # What it writes in the end must not land in the test that comes next.
    assert wait_for(lambda: all(thread.name != "op_jupyter tool" for thread in threading.enumerate()))


def test_what_cannot_be_written_is_the_error_of_its_function(shell: InteractiveShell) -> None:
    code = """
import sys
from IPython.display import display
def odd() -> None:
    display({"text/plain": object()}, raw=True)
    sys.stdout.write(b"bytes")
"""
    run(shell, OUTPUTS + code)
    run(shell, "runtime.model = scripted([[call('odd')], 'ok']); runtime.exec('go', tools=[odd])")
    last = shell.user_ns["runtime"].last_run
    assert "TypeError" in last.messages[2].text and type(last).from_json(last.to_json()) == last


def test_the_text_of_a_run_is_as_wide_as_the_terminal_and_in_a_notebook_the_same_everywhere(
    ready: InteractiveShell, cassette: MakeCassette, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cassette("go", ["some words " * 30])
    widths: dict[int, int] = {}
    for columns in (40, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        (output,) = ask(ready, f"-m replay:{file} --tools ''", "go").outputs
        widths[columns] = max(map(len, output.data["text/plain"].splitlines()))
    assert 30 < widths[40] <= 40 and 70 < widths[80] <= 80
    monkeypatch.setattr(ready, "kernel", object(), raising=False)
    assert ready.display_formatter
    data, _ = ready.display_formatter.format(RUN)
    assert max(map(len, data["text/plain"].splitlines())) > 90


def test_the_models_of_a_provider_are_listed(ready: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = OpenAIChat()
    with WireServer().running() as server:
        listed = Answer(pieces=chat.model_lists(["b", "a"]), headers={"content-type": "application/json"})
        server.script = [listed, listed]
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert run(ready, "%agent models").stdout.split() == ["openai:a", "openai:b"]
        assert run(ready, "%agent models openai:").stdout.split() == ["openai:a", "openai:b"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "UsageError: %agent takes: models [PROVIDER:]."),
        ("1 + 2?", "UsageError: %agent takes: models [PROVIDER:]."),
        ("models nope", "RunError: There is no provider 'nope'"),
        ("models replay:x", "RunError: replay: has no list of models"),
        ("models openai:", "set OPENAI_API_KEY"),
    ],
)
def test_a_command_that_cannot_be_done_is_one_clear_line(ready: InteractiveShell, line: str, said: str) -> None:
    shown = run(ready, f"%agent {line}")
    lines = [*shown.stdout.splitlines(), *shown.stderr.splitlines()]
    assert len(lines) == 1 and said in lines[0], lines
