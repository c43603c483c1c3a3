"""Steering, stop and the record, while the main thread is blocked: a real kernel, over its raw protocol."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from op_jupyter.notebook.bundle import MIME_TYPE

Message = dict[str, Any]

SETUP = """
%load_ext op_jupyter
import time
import op_jupyter.notebook.magic as magic
from op_jupyter import default_runtime
from op_jupyter.testing import call, scripted

returned = []

def slow(seconds: float) -> str:
    time.sleep(seconds)
    returned.append(time.time())
    return "done"

def script(*replies):
    # the cells ask this model, whatever they name
    magic.resolve = lambda spec: scripted(replies)
"""


class Kernel:
    """A kernel and its messages, as a front end with subshells sends and sees them."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client
        self.seen: list[Message] = []

    def send(self, kind: str, content: Message, *, subshell: str | None = None, metadata: Message | None = None) -> str:
        message = self.client.session.msg(kind, content, metadata=metadata or {})
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def start(self, code: str, **metadata: str) -> str:
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        return self.send("execute_request", {**content, "stop_on_error": True}, metadata=metadata)

    def reply(self, to: str, seconds: float = 20) -> Message:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            message: Message = self.client.get_shell_msg(timeout=seconds)
            if message["parent_header"].get("msg_id") == to:
                content: Message = message["content"]
                return content
        raise TimeoutError

    def run(self, code: str) -> Message:
        return self.reply(self.start(code))

    def value(self, expression: str) -> str:
        content = {"code": "", "silent": True, "user_expressions": {"value": expression}, "allow_stdin": False}
        found = self.reply(self.send("execute_request", {**content, "store_history": False, "stop_on_error": True}))
        return str(found["user_expressions"]["value"]["data"]["text/plain"])

    def wait_for(self, wanted: Callable[[Message], bool], seconds: float = 10) -> Message:
        """The first message on iopub that is wanted, also among those that came before; each is found once."""
        deadline = time.monotonic() + seconds
        while True:
            for message in self.seen:
                if wanted(message):
                    self.seen.remove(message)
                    return message
            self.seen.append(self.client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic())))

    def output(self) -> Message:
        content: Message = self.wait_for(lambda message: message["msg_type"] == "display_data")["content"]
        return content


class View:
    """The comms that a view opens, on a subshell."""

    def __init__(self, kernel: Kernel, run_id: str | None) -> None:
        self.kernel = kernel
        kernel.client.control_channel.send(kernel.client.session.msg("create_subshell_request", {}))
        self.subshell = kernel.client.get_control_msg(timeout=5)["content"]["subshell_id"]
        self.control, self.patches = uuid.uuid4().hex, uuid.uuid4().hex
        for comm_id, target in ((self.control, "op_jupyter.control"), (self.patches, "op_jupyter.patches")):
            content = {"comm_id": comm_id, "target_name": target, "data": {"run_id": run_id}}
            kernel.send("comm_open", content, subshell=self.subshell)
        self.opened = self._next(self.control)
        self.known = self.opened["known"]

    def _next(self, comm_id: str, seconds: float = 10) -> Message:
        def is_ours(message: Message) -> bool:
            return bool(message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == comm_id)

        data: Message = self.kernel.wait_for(is_ours, seconds)["content"]["data"]
        return data

    def ask(self, kind: str, **values: Any) -> Message:
        data = {"type": kind, "id": uuid.uuid4().hex, **values}
        self.kernel.send("comm_msg", {"comm_id": self.control, "data": data}, subshell=self.subshell)
        answer = self._next(self.control)
        assert (answer["type"], answer["id"]) == ("ack", data["id"])
        return answer

    def patch(self, seconds: float = 10) -> Message:
        return self._next(self.patches, seconds)


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(started: tuple[KernelManager, BlockingKernelClient]) -> Kernel:
    kernel = Kernel(started[1])
    assert kernel.run(SETUP)["status"] == "ok"
    return kernel


def watched_run(kernel: Kernel, *replies: str) -> tuple[str, View, Message]:
    """Start an agent cell as a front end does, and view it once it shows that it goes on."""
    assert kernel.run(f"script({', '.join(replies)})")["status"] == "ok"
    cell = kernel.start("%%agent --model any:one --tools slow\ngo", cellId=uuid.uuid4().hex)
    output = kernel.output()
    return cell, View(kernel, output["metadata"][MIME_TYPE]["live"]["run_id"]), output


def wait_until_a_function_runs(view: View, seconds: float = 10) -> None:
    """By asking for the record: the patch that says so may have been sent before the view was there."""
    deadline = time.monotonic() + seconds
    while not any(step.get("state") == "running" for step in view.ask("snapshot")["run"]["steps"]):
        assert time.monotonic() < deadline


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
    wait_until_a_function_runs(view)
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
    import json

    whole = json.loads(eval(kernel.value("default_runtime().last_run.to_json()")))
    assert run == whole


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


def test_a_page_that_knows_no_run_is_told_which_one_goes_on_and_in_which_cell(kernel: Kernel) -> None:
    cell, view, output = watched_run(kernel, "[call('slow', seconds=0.5)]", "'ok'")
    late = View(kernel, None)
    assert late.opened["run_id"] == output["metadata"][MIME_TYPE]["live"]["run_id"] and late.opened["cell_id"]
    assert late.ask("snapshot")["run"]["run_id"] == late.opened["run_id"]
    assert kernel.reply(cell)["status"] == "ok"
    view.ask("final")


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
