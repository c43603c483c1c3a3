"""Where every event of a tree of runs goes: into the record, and then to everyone who listens.

One event at a time, from whatever thread; what an event does to the record is in `record`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from op_jupyter.errors import RunError
from op_jupyter.events import AgentEvent
from op_jupyter.record import Run, fold

log = logging.getLogger(__name__)

OnEvent = Callable[[AgentEvent], None]


@dataclass(frozen=True, slots=True)
class Emitter:
    """Folds each event into the record `run`, then calls the subscribers; one that fails is logged."""

    run: Run
    subscribers: list[OnEvent]
    lock: threading.RLock

    def __call__(self, event: AgentEvent) -> None:
        with self.lock:
            fold(self.run, event)
            for subscriber in self.subscribers:
                try:
                    subscriber(event)
                except Exception:
                    log.exception("A subscriber failed on an event of kind %r", event.kind)

    def with_subscriber(self, subscriber: OnEvent) -> Emitter:
        """The same, for one nested run that somebody listens to."""
        return Emitter(self.run, [*self.subscribers, subscriber], self.lock)


@contextlib.contextmanager
def events_written_to(path: str) -> Iterator[OnEvent]:
    """A subscriber that appends every event to the file at `path`, as one line of JSON."""
    from pydantic_core import to_json

    try:
        file = open(path, "ab")  # noqa: SIM115
    except OSError as error:
        reason = f"OP_JUPYTER_EVENTS names {path!r}, which cannot be written: {error.strerror}"
        raise RunError(reason, kind="setup") from None
    with file:

        def write(event: AgentEvent) -> None:
            file.write(to_json(event, bytes_mode="base64") + b"\n")
            file.flush()

        yield write
