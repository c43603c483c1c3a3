"""A person is asked in the card of the call, else in a line of input, else nobody is: a real kernel, over the wire."""

from __future__ import annotations

import time

import pytest

from tests.notebook.raw_kernel import Kernel, View, wait_until_a_function_is, watched_run

ASKS = "[call('delete', name='a')]"
RESULT = "[m.text for m in default_runtime().last_run.messages if m.kind == 'tool_result'][0]"
REFUSED = "Not run: this call was not approved."
PROMPT = 'Let delete run with {"name": "a"}? [y/N, or a: it and all later calls of it in this run] '


def run_id(view: View) -> str:
    run: str = view.ask("snapshot")["run"]["run_id"]
    return run


@pytest.mark.parametrize(("allow", "result"), [(True, "a is gone"), (False, REFUSED)])
def test_the_answer_in_the_card_decides_while_the_kernel_is_blocked(kernel: Kernel, allow: bool, result: str) -> None:
    cell, view, _ = watched_run(kernel, ASKS, "'Done.'", tools="delete")
    call = wait_until_a_function_is("waiting", view)
    assert call["arguments"] == {"name": "a"}
    assert not view.ask("approve", run_id=run_id(view), call_id="another", allow=True)["ok"]
    assert view.ask("approve", run_id=run_id(view), call_id=call["id"], allow=allow)["ok"]
    assert kernel.reply(cell)["status"] == "ok"
    assert kernel.value(RESULT) == repr(result)
    assert kernel.value("returned") == repr(["a"] if allow else [])
    view.ask("final")


def test_stop_ends_a_run_that_waits_for_an_approval(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, ASKS, "'Done.'", tools="delete")
    wait_until_a_function_is("waiting", view)
    started = time.monotonic()
    view.ask("stop")
    assert kernel.reply(cell)["ename"] == "RunAborted"
    assert time.monotonic() - started < 0.3
    assert kernel.value("returned") == "[]"


def test_a_call_waits_for_ten_minutes_after_the_last_sign_of_a_view_and_is_refused_then(kernel: Kernel) -> None:
    assert kernel.run("import op_jupyter.notebook.channel as channel\nchannel.ATTENDED = 1.0")["status"] == "ok"
    cell, view, _ = watched_run(kernel, ASKS, "'Done.'", tools="delete")
    wait_until_a_function_is("waiting", view)
    started = time.monotonic()
    for _ in range(8):
        time.sleep(0.2)
        assert view.ask("here")["ok"]
    assert wait_until_a_function_is("waiting", view)["name"] == "delete"
    assert kernel.reply(cell)["status"] == "ok"
    assert time.monotonic() - started > 2.5
    assert kernel.value(RESULT) == repr(REFUSED)
    assert kernel.run("channel.ATTENDED = 600.0")["status"] == "ok"


@pytest.mark.parametrize(("typed", "result"), [("y", "a is gone"), ("", REFUSED)])
def test_a_front_end_without_a_view_is_asked_in_a_line_of_input(kernel: Kernel, typed: str, result: str) -> None:
    assert kernel.run(
        f"import op_jupyter.notebook.channel as channel\nchannel.FIRST_VIEW = 0.1\nscript({ASKS}, 'Done.')"
    )
    cell = kernel.start("%%agent --model any:one --tools delete\ngo", allow_stdin=True)
    asked = kernel.client.get_stdin_msg(timeout=10)
    assert asked["content"]["prompt"] == PROMPT
    # A view that comes only now is told the truth.
    late = View(kernel, None)
    call = wait_until_a_function_is("waiting", late)
    assert not late.ask("approve", run_id=run_id(late), call_id=call["id"], allow=True)["ok"]
    kernel.client.input(typed)
    assert kernel.reply(cell)["status"] == "ok"
    assert kernel.value(RESULT) == repr(result)
    assert kernel.run("channel.FIRST_VIEW = 5.0")["status"] == "ok"


TWICE = "[call('delete', name='a'), call('delete', name='b')]"
APPROVALS = "[s.approval for s in default_runtime().last_run.steps if s.kind == 'call']"


def test_always_in_the_card_lets_the_later_calls_run_without_asking(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, TWICE, "'Done.'", tools="delete")
    call = wait_until_a_function_is("waiting", view)
    assert view.ask("approve", run_id=run_id(view), call_id=call["id"], allow="always")["ok"]
    assert kernel.reply(cell)["status"] == "ok"
    assert kernel.value("returned") == "['a', 'b']"
    assert kernel.value(APPROVALS) == "['always', 'earlier']"
    view.ask("final")


def test_always_in_a_line_of_input_is_not_asked_again(kernel: Kernel) -> None:
    cell = kernel.start(
        f"from op_jupyter import Runtime\nRuntime(model=scripted([{TWICE}, 'Done.']), tools=[delete]).exec('go')",
        allow_stdin=True,
    )
    kernel.client.get_stdin_msg(timeout=10)
    kernel.client.input("a")
    assert kernel.reply(cell)["status"] == "ok"
    assert kernel.value("returned") == "['a', 'b']"


def test_without_a_front_end_nothing_waits_and_nothing_runs(kernel: Kernel) -> None:
    assert kernel.run(f"script({ASKS}, 'Done.')")["status"] == "ok"
    started = time.monotonic()
    assert kernel.run("%%agent --model any:one --tools delete\ngo")["status"] == "ok"
    assert time.monotonic() - started < 2
    assert kernel.value(RESULT) == repr(REFUSED)


def test_a_run_started_from_python_asks_in_a_line_of_input(kernel: Kernel) -> None:
    cell = kernel.start(
        f"from op_jupyter import Runtime\nRuntime(model=scripted([{ASKS}, 'Done.']), tools=[delete]).exec('go')",
        allow_stdin=True,
    )
    kernel.client.get_stdin_msg(timeout=10)
    kernel.client.input("yes")
    assert kernel.reply(cell)["status"] == "ok"
    assert kernel.value("returned") == "['a']"
