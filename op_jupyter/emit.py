"""Where every event of a tree of runs goes: into the record, and then to everyone who listens.

One event at a time, from whatever thread; what an event does to the record is in `record`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from op_jupyter.endings import endings
from op_jupyter.errors import RunError
from op_jupyter.events import AgentEvent, AgentEventAgentEnd, AgentEventMessageUpdate, AgentEventSteering
from op_jupyter.record import Run, fold
from op_jupyter.redact import known_keys, writable

log = logging.getLogger(__name__)

OnEvent = Callable[[AgentEvent], None]


@dataclass(slots=True)
class Emitter:
    """Folds each event into the record `run`, then calls the subscribers; one that fails is logged.

    What it takes is made fit to be written first, here and nowhere else. What a run has left open is ended before the
    run is. After the end of the root it takes nothing.
    """

    run: Run
    subscribers: list[OnEvent]
    lock: threading.RLock
    api_key: str | None = field(default=None, repr=False)
    keys: list[str] = field(default_factory=list[str], repr=False)

    def __call__(self, event: AgentEvent) -> None:
        with self.lock:
            if self.run.ended is not None and not isinstance(event, AgentEventSteering):
                return  # a function that was left goes on, and still writes
            if not isinstance(event, AgentEventMessageUpdate):
                self.keys = known_keys(self.api_key)
            first = endings(self.run, event) if isinstance(event, AgentEventAgentEnd) else []
            exits = [exit_ for one in (*first, event) if (exit_ := self._tell(writable(one, self.keys)))]
            if exits:
                raise exits[-1]

    def _tell(self, event: AgentEvent) -> BaseException | None:
        """Fold and pass on `event`; what a subscriber raises to leave with is returned, once the others are told."""
        fold(self.run, event)
        exit_: BaseException | None = None
        for subscriber in self.subscribers:
            try:
                subscriber(event)
            except Exception as error:
                log.warning("A subscriber failed on an event of kind %r: %r", event.kind, error)
                log.debug("A subscriber failed", exc_info=True)
            except BaseException as error:
                exit_ = error
        return exit_

    def with_subscriber(self, subscriber: OnEvent) -> Emitter:
        """The same, for one nested run that somebody listens to."""
        return replace(self, subscribers=[*self.subscribers, subscriber])


@contextlib.contextmanager
def events_written_to(path: str) -> Iterator[OnEvent]:
    """A subscriber that appends every event to the file at `path`, as one line of JSON."""
    from pydantic_core import to_json

    try:
        file = open(path, "ab", buffering=0)  # noqa: SIM115
    except OSError as error:
        reason = f"OP_JUPYTER_EVENTS names {path!r}, which cannot be written: {error.strerror}"
        raise RunError(reason, kind="setup") from None
    with file:

        def write(event: AgentEvent) -> None:
            file.write(to_json(event, bytes_mode="base64") + b"\n")

        yield write
