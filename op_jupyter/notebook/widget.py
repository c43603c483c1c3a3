"""The run as an anywidget, for front ends that have no renderer of ours.

What it draws, and how it reaches the kernel, is in the front end (`widget.ts`); which events it is sent, in `channel`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets


class RunWidget(anywidget.AnyWidget):
    """A live run. `run` is its record when it was change number `live["seq"]`; later changes are sent as messages."""

    _esm = (Path(__file__).parents[1] / "static" / "widget.js").read_text(encoding="utf-8")
    run: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    live: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def close(self) -> None:
        """Take the widget out of the page, and all that it keeps."""
        if self.layout:
            self.layout.close()  # a widget of its own
        super().close()
