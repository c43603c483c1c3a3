"""The way between a running cell and its views: patches out, and steering, stop and approvals in.

Threads: the main thread only puts events in. A thread of the channel's own sends patches; requests are answered by the
kernel's subshell thread, while the main thread may be blocked. The main thread never publishes on a control comm.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Literal

from op_jupyter.emit import Emitter
from op_jupyter.errors import RunError
from op_jupyter.events import AgentEvent
from op_jupyter.notebook.as_json import run_as_json
from op_jupyter.notebook.patches import Op, add, ops_of
from op_jupyter.runtime import Runtime

CONTROL_TARGET = "op_jupyter.control"
PATCHES_TARGET = "op_jupyter.patches"
INTERVAL = 0.033
"""Seconds between two messages with patches, at least."""
RESEND_AFTER, RESENDS = 1.0, 5
FIRST_VIEW = 5.0
"""Seconds after the start of a run in which a view of it is expected."""
ATTENDED = 600.0
"""Seconds after the last sign of a view for which somebody is taken to be there. A view gives one every minute."""

Answer = bool | Literal["always"]
"""Whether a call may run; `"always"`, that later ones of its function may, too."""

log = logging.getLogger(__name__)

_channels: dict[str, Channel] = {}
_left_subshells: list[str] = []
"""Subshells of views that are gone. A page that is left cannot wait to delete its own, so the next view does."""


class Channel:
    """What the views of one run are told, and what they ask."""

    def __init__(self, runtime: Runtime, cell_id: str | None = None) -> None:
        self.cell_id = cell_id
        self._runtime = runtime
        self._emit: Emitter | None = None
        self._changed = threading.Condition()
        self._number = 0
        self._batches: list[dict[str, Any]] = []
        self._patch_comms: list[Any] = []
        self._bundle: dict[str, Any] | None = None
        self._closed = False
        self._received = False
        self._started = time.monotonic()
        self._heard: float | None = None
        self._asked: dict[tuple[str, str], Future[Answer]] = {}

    # ------------------------------------------------------------ from the loop

    def on_event(self, event: AgentEvent) -> None:
        """Take an event that has just been folded into the record."""
        if self._emit is None:
            self._emit = self._runtime.under_way
            if self._emit is None:
                return
            _channels[self.run_id] = self
            threading.Thread(target=self._send, name="op_jupyter patches", daemon=True).start()
        ops = ops_of(self._emit.run, event)
        with self._changed:
            for op in ops:
                self._add(op)
            self._changed.notify()

    def finish(self, data: dict[str, Any], metadata: dict[str, Any]) -> None:
        """The run is over, and is shown by this bundle."""
        with self._changed:
            self._bundle = {"data": data, "metadata": metadata}
            self._changed.notify()

    def close(self) -> None:
        """Nothing more comes, whether or not there is a bundle."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    @property
    def run_id(self) -> str:
        """The id of the root run."""
        return self._emit.run.run_id if self._emit else ""

    def _add(self, op: Op) -> None:
        self._number += 1
        if not self._batches or self._batches[-1].get("closed"):
            self._batches.append({"first": self._number, "ops": []})
        batch = self._batches[-1]
        batch["last"] = self._number
        add(batch["ops"], op)

    # ------------------------------------------------------------ to the views

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._batches or self.is_over)
                batches, self._batches = self._batches, []
                comms = list(self._patch_comms)
                over = self.is_over
            if batches:
                message = {"batches": [{key: batch[key] for key in ("first", "last", "ops")} for batch in batches]}
                self._send_to(comms, message)
            if over:
                break
            time.sleep(INTERVAL)
        _forget_those_before(self)
        if self._bundle:
            self._send_bundle()

    def _send_bundle(self) -> None:
        """Send the final bundle until somebody says that it has come: a busy server drops messages in silence."""
        for _ in range(RESENDS):
            with self._changed:
                comms = list(self._patch_comms)
            self._send_to(comms, {"ended": True, "bundle": self._bundle})
            with self._changed:
                if self._changed.wait_for(lambda: self._received, RESEND_AFTER):
                    return

    def _send_to(self, comms: list[Any], message: dict[str, Any]) -> None:
        for comm in comms:
            try:
                comm.send(message)
            except Exception:
                log.debug("A view cannot be reached", exc_info=True)
                self.remove_view(comm)

    # ------------------------------------------------------------ from the views

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self._bundle is not None or self._closed

    @property
    def is_wanted(self) -> bool:
        """Whether there is something that no view has seen: the run goes on, or its end has reached nobody."""
        return not self._received

    @property
    def is_attended(self) -> bool:
        """Whether a view has ever been heard of."""
        return self._heard is not None

    def attended_until(self) -> float:
        """Until when somebody is taken to be there, by the monotonic clock."""
        return self._started + FIRST_VIEW if self._heard is None else self._heard + ATTENDED

    @contextlib.contextmanager
    def asking(self, run_id: str, call_id: str) -> Iterator[Future[Answer]]:
        """Where the answer of a person comes, who is asked whether this call may run, until the end of the block."""
        answer = self._asked[run_id, call_id] = Future()
        try:
            yield answer
        finally:
            self._asked.pop((run_id, call_id), None)

    def hear(self) -> None:
        """Note a sign of a view."""
        self._heard = time.monotonic()

    def add_view(self, comm: Any) -> None:
        """Send patches on `comm`, too; where the run has ended, how it ended."""
        with self._changed:
            self._patch_comms.append(comm)
            bundle = self._bundle
        if bundle:
            self._send_to([comm], {"ended": True, "bundle": bundle})

    def remove_view(self, comm: Any) -> None:
        """Send nothing more on `comm`."""
        with self._changed:
            self._patch_comms = [one for one in self._patch_comms if one is not comm]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What a request of a view comes to."""
        match request.get("type"):
            case "steer":
                text = request.get("text")
                if not isinstance(text, str) or not text.strip():
                    return {"ok": False, "reason": "There is no text to send."}
                return {"ok": True, "state": self._steer(text)}
            case "stop":
                self._if_under_way(self._runtime.abort)
                return {"ok": True}
            case "approve":
                answer = self._asked.pop((str(request.get("run_id")), str(request.get("call_id"))), None)
                if answer is None:
                    return {"ok": False, "reason": "This call does not wait for an answer here."}
                answer.set_result("always" if request.get("allow") == "always" else request.get("allow") is True)
                return {"ok": True}
            case "here":
                return {"ok": True}
            case "snapshot":
                return {"ok": True, **self._snapshot()}
            case "final":
                with self._changed:
                    self._received = True
                    self._changed.notify()
                return {"ok": True}
            case other:
                return {"ok": False, "reason": f"There is no request of type {other!r}"}

    def _steer(self, text: str) -> str:
        try:
            return "queued" if self._if_under_way(lambda: self._runtime.steer(text)) else "undelivered"
        except (RunError, ValueError):
            return "undelivered"

    def _if_under_way(self, act: Callable[[], None]) -> bool:
        """Whether this run goes on, and `act` was done to it."""
        if self._runtime.under_way is not self._emit:
            return False
        act()
        return True

    def _snapshot(self) -> dict[str, Any]:
        assert self._emit is not None
        # Under the lock of the record no event is folded, so that the number is that of the copy.
        with self._emit.lock, self._changed:
            if self._batches:
                self._batches[-1]["closed"] = True
            return {"seq": self._number, "run": run_as_json(self._emit.run), "time": time.time()}


def channel_of(run_id: str) -> Channel | None:
    """The channel of a root run that goes on, or was the last to end."""
    return _channels.get(run_id)


def _forget_those_before(last: Channel) -> None:
    """Only the run that ended last is kept, for a page that was loading meanwhile."""
    for channel in list(_channels.values()):
        if channel is last:
            break
        if channel.is_over:
            _channels.pop(channel.run_id, None)


# -------------------------------------------------------------------- the comms


def register(comm_manager: Any) -> None:
    """Let views open their comms in this kernel."""
    comm_manager.register_target(CONTROL_TARGET, _open_control)
    comm_manager.register_target(PATCHES_TARGET, _open_patches)


def _open_control(comm: Any, message: dict[str, Any]) -> None:
    channel = _channel_named_in(message)

    def handle(request: dict[str, Any]) -> None:
        data = _data_of(request)
        if channel:
            channel.hear()
        answer = channel.answer(data) if channel else {"ok": False, "reason": "This run is over."}
        comm.send({"type": "ack", "id": data.get("id"), **answer})

    def handle_close(_: Any) -> None:
        subshell = message["header"].get("subshell_id")
        if subshell:
            _left_subshells.append(subshell)

    # Not `comm.on_msg`: that fires pre_execute and post_execute, which close a figure that is half drawn.
    comm.handle_msg = handle
    comm.handle_close = handle_close
    if channel:
        channel.hear()
    known = {"run_id": channel.run_id, "cell_id": channel.cell_id, "over": channel.is_over} if channel else {}
    left, _left_subshells[:] = _left_subshells[:], []
    comm.send({"type": "open", "known": channel is not None, "left_subshells": left, **known})


def _data_of(message: dict[str, Any]) -> dict[str, Any]:
    data = message["content"].get("data")
    return data if isinstance(data, dict) else {}


def _channel_named_in(message: dict[str, Any]) -> Channel | None:
    """The channel of the run that a view names; a page that was loaded again knows none, and gets what it missed."""
    run_id = _data_of(message).get("run_id")
    if run_id is not None:
        return channel_of(str(run_id))
    return next((channel for channel in reversed(list(_channels.values())) if channel.is_wanted), None)


def _open_patches(comm: Any, message: dict[str, Any]) -> None:
    channel = _channel_named_in(message)
    if channel is None:
        return
    comm.handle_close = lambda _: channel.remove_view(comm)
    channel.add_view(comm)
