"""Steering, stop and the record, while the main thread is blocked: a real kernel, over its raw protocol."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from op_jupyter.notebook.bundle import MIME_TYPE
from op_jupyter.notebook.prices import priced
from tests.notebook.raw_kernel import Kernel, Message, View, wait_until_a_function_is, watched_run


def apply(run: Message, ops: list[Message]) -> None:
    """Do to a copy of a root run what a view does."""
    for op in ops:
        steps = run["steps"]
        match op["op"]:
            case "set":
                run.update(op["fields"])
            case "step":
                steps[op["index"] : op["index"] + 1] = [op["step"]]
            case "append":
                block = steps[op["index"]]["message"]["content"][op["block"]]
                key = {"text": "text", "thinking": "thinking", "tool_call": "raw_arguments"}[block["kind"]]
                block[key] = (block[key] or "") + op["text"]
            case "output":
                steps[op["index"]]["output"].append(op["output"])
            case other:
                raise AssertionError(other)


def test_a_message_is_in_the_kernel_while_a_function_blocks_the_main_thread(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, "[call('slow', seconds=1), call('slow', seconds=9)]", "'The end.'")
    assert view.known
    asked = time.time()
    assert view.ask("steer", text="only 2013, please")["state"] == "queued"
    taken = time.time() - asked
    assert kernel.reply(cell)["status"] == "ok"
    assert taken < 0.1
    assert asked + taken < float(kernel.value("returned[-1]"))
    texts = kernel.value("[m.text for m in default_runtime().last_run.messages if m.kind == 'tool_result']")
    assert texts == "['done', 'Skipped due to queued user message']"
    assert kernel.value("default_runtime().last_run.steps[-2].message.content[0].text") == "'only 2013, please'"


def test_stop_frees_a_sleeping_cell_at_once_and_the_next_one_works(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, "[call('slow', seconds=20)]", "'never'")
    wait_until_a_function_is("running", view)
    started = time.monotonic()
    assert view.ask("stop")["ok"]
    reply = kernel.reply(cell)
    assert time.monotonic() - started < 0.3
    assert (reply["status"], reply["ename"]) == ("error", "RunAborted")
    assert kernel.value("1 + 1") == "2"


def test_a_snapshot_and_the_patches_after_it_are_the_whole_record(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, "['Let me see.', call('slow', seconds=0.5)]", "'A longer answer, in words.'")
    snapshot = view.ask("snapshot")
    run, seq = snapshot["run"], snapshot["seq"]
    while True:
        message = view.patch()
        if "ended" in message:
            break
        for batch in message["batches"]:
            if batch["last"] <= seq:
                continue
            assert batch["first"] == seq + 1
            apply(run, batch["ops"])
            seq = batch["last"]
    assert view.ask("final")["ok"]
    assert kernel.reply(cell)["status"] == "ok"
    whole = json.loads(eval(kernel.value("default_runtime().last_run.to_json()")))
    # A view is told the cost too.
    assert run == priced(whole)


def test_the_finished_run_is_sent_again_until_a_view_has_it(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, "'Hello.'")
    assert kernel.reply(cell)["status"] == "ok"
    endings = 0
    while endings < 2:
        message = view.patch()
        endings += "ended" in message
    assert view.ask("final")["ok"]
    update = kernel.wait_for(lambda message: message["msg_type"] == "update_display_data")["content"]
    assert message["bundle"]["data"] == update["data"]
    assert "live" not in update["metadata"][MIME_TYPE]


def test_a_view_of_a_run_that_is_over_is_told_so(kernel: Kernel) -> None:
    view = View(kernel, "no-such-run")
    assert not view.known
    assert view.ask("steer", text="hello?") | {"id": ""} == {
        "type": "ack",
        "id": "",
        "ok": False,
        "reason": "This run is over.",
    }


def test_a_page_that_was_loading_while_the_run_ended_is_sent_how_it_ended(kernel: Kernel) -> None:
    cell, _, output = watched_run(kernel, "'Hello.'")
    assert kernel.reply(cell)["status"] == "ok"
    late = View(kernel, None)
    assert late.opened["run_id"] == output["metadata"][MIME_TYPE]["live"]["run_id"]
    assert "Hello." in late.patch()["bundle"]["data"]["text/plain"]
    assert late.ask("final")["ok"]
    # Nothing is offered to a page that asks for what it missed, once it has been seen; it is still there by name.
    assert not View(kernel, None).known
    assert View(kernel, late.opened["run_id"]).patch()["ended"]


def test_a_page_that_knows_no_run_is_told_which_one_goes_on_and_in_which_cell(kernel: Kernel) -> None:
    cell, view, output = watched_run(kernel, "[call('slow', seconds=0.5)]", "'ok'")
    late = View(kernel, None)
    assert late.opened["run_id"] == output["metadata"][MIME_TYPE]["live"]["run_id"] and late.opened["cell_id"]
    assert late.ask("snapshot")["run"]["run_id"] == late.opened["run_id"]
    assert kernel.reply(cell)["status"] == "ok"
    view.ask("final")


def test_the_next_view_is_told_which_subshells_are_left_by_views_that_are_gone(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, "[call('slow', seconds=0.5)]", "'ok'")
    kernel.send("comm_close", {"comm_id": view.control, "data": {}}, subshell=view.subshell)
    deadline = time.monotonic() + 10
    following = View(kernel, None)
    while view.subshell not in following.opened["left_subshells"]:
        assert time.monotonic() < deadline
        following = View(kernel, None)
    assert View(kernel, None).opened["left_subshells"] == []
    assert kernel.reply(cell)["status"] == "ok"
    following.ask("final")


@pytest.mark.parametrize("data", [None, "steer", ["steer"], {"type": "steer"}, {"type": "steer", "text": " "}])
def test_a_request_that_makes_no_sense_is_answered_and_does_nothing(kernel: Kernel, data: Any) -> None:
    cell, view, _ = watched_run(kernel, "[call('slow', seconds=0.3)]", "'ok'")
    kernel.send("comm_msg", {"comm_id": view.control, "data": data}, subshell=view.subshell)
    assert not view.answer()["ok"]
    assert kernel.reply(cell)["status"] == "ok"
    assert kernel.value("len(default_runtime().last_run.messages)") == "4"
    view.ask("final")


def test_a_run_that_a_function_starts_by_the_magic_is_drawn_in_the_call_of_that_function(kernel: Kernel) -> None:
    assert (
        kernel.run("def inner() -> None:\n    get_ipython().run_cell_magic('agent', '--model any:one', 'go')")["status"]
        == "ok"
    )
    cell, view, _ = watched_run(kernel, "[call('inner')]", "'inside'", "'ok'", tools="inner")
    assert kernel.reply(cell)["status"] == "ok"
    view.ask("final")
    outputs = [message for message in kernel.seen if message["msg_type"] == "display_data"]
    assert outputs == []
    assert (
        kernel.value("[run.text for runs in default_runtime().last_run.children.values() for run in runs]")
        == "['inside']"
    )


def test_a_request_of_an_unknown_type_is_refused(kernel: Kernel) -> None:
    cell, view, _ = watched_run(kernel, "[call('slow', seconds=0.3)]", "'ok'")
    assert not view.ask("dance")["ok"]
    assert kernel.reply(cell)["status"] == "ok"
    view.ask("final")


def test_what_nobody_watches_is_shown_once_at_its_end(kernel: Kernel) -> None:
    assert kernel.run("script('Hello.')")["status"] == "ok"
    assert kernel.run("%%agent --model any:one --tools slow\ngo")["status"] == "ok"
    output = kernel.output()
    assert "live" not in output["metadata"][MIME_TYPE] and "Hello." in output["data"]["text/plain"]
    assert not [message for message in kernel.seen if message["msg_type"] in ("update_display_data", "comm_open")]


def test_a_message_does_not_fire_the_events_that_close_a_half_drawn_figure(kernel: Kernel) -> None:
    counted = "fired = []\nget_ipython().events.register('post_execute', lambda: fired.append(1))"
    assert kernel.run(counted)["status"] == "ok"
    cell, view, _ = watched_run(kernel, "[call('slow', seconds=0.5)]", "'ok'")
    before = "len(fired)"
    view.ask("steer", text="a")
    view.ask("snapshot")
    assert kernel.reply(cell)["status"] == "ok"
    view.ask("final")
    # One for each request to execute: the cell that counts, the script, the agent cell, and `value`.
    assert int(kernel.value(before)) == 4
