"""The output of an agent cell while its run goes on, where the front end can show it live.

Who can is decided by the request that runs the cell, not by the name of the front end.
"""

from __future__ import annotations

import uuid
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from op_jupyter.events import AgentEvent
from op_jupyter.notebook.bundle import MIME_TYPE, mime_bundle
from op_jupyter.notebook.channel import Channel
from op_jupyter.record import Run
from op_jupyter.runtime import Runtime


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
    """One output that is there from the first event on, and is replaced by the finished run."""

    def __init__(self, shell: InteractiveShell, runtime: Runtime) -> None:
        self._shell = shell
        self._runtime = runtime
        self._channel = Channel(runtime, _request(shell).get("metadata", {}).get("cellId"))
        self._display_id = uuid.uuid4().hex
        self._shown = False

    def on_event(self, event: AgentEvent) -> None:
        """Show the output at the first event, and pass all of them on to the views."""
        self._channel.on_event(event)
        if not self._shown and self._runtime.under_way:
            self._shown = True
            data, metadata = mime_bundle(self._runtime.under_way.run)
            metadata[MIME_TYPE]["live"] = {"run_id": event.run_id, "seq": 0}
            self._publish(data, metadata)

    def finish(self, run: Run) -> None:
        """Replace the output by the finished run."""
        data, metadata = mime_bundle(run)
        self._publish(data, metadata, update=self._shown)
        self._channel.finish(data, metadata)

    def _publish(self, data: dict[str, Any], metadata: dict[str, Any], update: bool = False) -> None:
        transient = {"display_id": self._display_id}
        self._shell.display_pub.publish(data=data, metadata=metadata, transient=transient, update=update)
