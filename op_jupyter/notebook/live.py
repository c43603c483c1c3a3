"""The output of an agent cell while its run goes on, where the front end can show it live.

Who can is decided by the request that runs the cell, not by the name of the front end.
"""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell

from op_jupyter.events import AgentEvent
from op_jupyter.notebook.as_json import run_as_json
from op_jupyter.notebook.bundle import MIME_TYPE, mime_bundle
from op_jupyter.notebook.channel import Channel
from op_jupyter.record import Run
from op_jupyter.runtime import Runtime

if TYPE_CHECKING:
    from op_jupyter.notebook.widget import RunWidget

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
FIRST_COMM = 1.0
"""Seconds after which a view that can open a comm has opened one."""


def is_watched(shell: InteractiveShell) -> bool:
    """Whether a person's front end runs this cell: it says which cell it is, or takes input. nbclient does neither."""
    request = _request(shell)
    return bool(request.get("metadata", {}).get("cellId") or request.get("content", {}).get("allow_stdin"))


def _request(shell: InteractiveShell) -> dict[str, Any]:
    """The request that runs the cell; empty where there is no kernel."""
    kernel = getattr(shell, "kernel", None)
    request: dict[str, Any] = kernel.get_parent("shell") if kernel else {}
    return request


class LiveOutput:
    """One output that is there from the first event on, and is replaced by the finished run.

    It holds the run for our own renderer, and a widget for front ends that do not have that.
    """

    def __init__(self, shell: InteractiveShell, runtime: Runtime) -> None:
        self._shell = shell
        self._runtime = runtime
        self._cell_id: str | None = _request(shell).get("metadata", {}).get("cellId")
        self.channel = Channel(runtime, self._cell_id)
        self._display_id = uuid.uuid4().hex
        self._widget: RunWidget | None = None
        self._shown = False

    def on_event(self, event: AgentEvent) -> None:
        """Show the output at the first event, and pass all of them on to the views."""
        self.channel.on_event(event)
        if not self._shown and self._runtime.under_way:
            self._shown = True
            self._show(self._runtime.under_way.run)

    def finish(self, run: Run) -> None:
        """Replace the output by the finished run."""
        try:
            data, metadata = mime_bundle(run)
            if self._cell_id is None and self._shown:
                # Some of the other front ends cannot update an output.
                self._shell.display_pub.clear_output(wait=True)
                self._publish(data, metadata)
            else:
                self._publish(data, metadata, update=self._shown)
            self.channel.finish(data, metadata)
        finally:
            self.channel.close()
            if self._widget:
                self._widget.close()

    def _show(self, run: Run) -> None:
        from op_jupyter.notebook.widget import RunWidget

        data, metadata = mime_bundle(run)
        live = {"run_id": run.run_id, "seq": 0}
        metadata[MIME_TYPE]["live"] = live
        self._widget = RunWidget(run=run_as_json(run), live=live)
        view = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
        self._publish({**data, WIDGET_VIEW: view}, metadata)
        timer = threading.Timer(FIRST_COMM, self._feed_widget)
        timer.daemon = True
        timer.start()

    def _feed_widget(self) -> None:
        """Send changes to the widget itself, where no view has opened a comm: it is taken that none can."""
        widget = self._widget
        if widget and not self.channel.is_attended and not self.channel.is_over:
            self.channel.add_view(widget)
            snapshot = self.channel.answer({"type": "snapshot"})
            with widget.hold_sync():
                widget.run, widget.live = snapshot["run"], {**widget.live, "seq": snapshot["seq"]}

    def _publish(self, data: dict[str, Any], metadata: dict[str, Any], update: bool = False) -> None:
        transient = {"display_id": self._display_id}
        self._shell.display_pub.publish(data=data, metadata=metadata, transient=transient, update=update)
