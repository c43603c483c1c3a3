"""A real kernel over its raw protocol, and the comms that a view opens in it.

What is asserted is the business of the tests.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

from op_jupyter.notebook.bundle import MIME_TYPE

Message = dict[str, Any]

SETUP = """
%load_ext op_jupyter
import time
import op_jupyter.notebook.magic as magic
from op_jupyter import default_runtime, function
from op_jupyter.testing import call, scripted

returned = []

def slow(seconds: float) -> str:
    time.sleep(seconds)
    returned.append(time.time())
    return "done"

@function(requires_approval=True, expose=False)
def delete(name: str) -> str:
    returned.append(name)
    return f"{name} is gone"

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

    def start(self, code: str, allow_stdin: bool = False, **metadata: str) -> str:
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}}
        content["allow_stdin"] = allow_stdin
        return self.send("execute_request", {**content, "stop_on_error": False}, metadata=metadata)

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
        found = self.reply(self.send("execute_request", {**content, "store_history": False, "stop_on_error": False}))
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

    def forget(self, until: str) -> None:
        """Drop what came on iopub up to the end of a request."""
        self.wait_for(
            lambda message: (
                message["parent_header"].get("msg_id") == until and message["content"].get("execution_state") == "idle"
            )
        )
        self.seen.clear()

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
        answer = self.answer()
        assert (answer["type"], answer["id"]) == ("ack", data["id"])
        return answer

    def answer(self) -> Message:
        """What comes next on the control comm."""
        return self._next(self.control)

    def patch(self, seconds: float = 10) -> Message:
        return self._next(self.patches, seconds)


def watched_run(kernel: Kernel, *replies: str, tools: str = "slow") -> tuple[str, View, Message]:
    """Start an agent cell as a front end does, and view it once it shows that it goes on."""
    assert kernel.run(f"script({', '.join(replies)})")["status"] == "ok"
    cell = kernel.start(f"%%agent --model any:one --tools {tools}\ngo", cellId=uuid.uuid4().hex)
    output = kernel.output()
    return cell, View(kernel, output["metadata"][MIME_TYPE]["live"]["run_id"]), output


def wait_until_a_function_is(state: str, view: View, seconds: float = 10) -> Message:
    """The call that is in this state, asked for: the patch may have been sent before the view was there."""
    deadline = time.monotonic() + seconds
    while True:
        for step in view.ask("snapshot")["run"]["steps"]:
            if step.get("state") == state:
                call: Message = step["call"]
                return call
        assert time.monotonic() < deadline
