"""Where every event of a tree of runs goes: into the record, and then to everyone who listens.

One event at a time, from whatever thread, and many writes as one; what an event does to the record is in `record`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from dataclasses import dataclass, field, replace

from op_jupyter.endings import endings
from op_jupyter.errors import RunError
from op_jupyter.events import (
    AgentEvent,
    AgentEventAgentEnd,
    AgentEventSteering,
    AgentEventToolUpdate,
    growth,
    with_growth,
)
from op_jupyter.record import Run, fold
from op_jupyter.redact import beginning_of_key, keys_of_environment, longest_first, writable

log = logging.getLogger(__name__)

OnEvent = Callable[[AgentEvent], None]


GATHERING = 0.033
"""Seconds for which what a function writes is gathered, so that a million writes are few events."""


@dataclass(slots=True)
class _Held:
    """Events by which one text grows, not told yet: the first of them, and the text of each."""

    event: AgentEvent
    target: str
    texts: list[str]


@dataclass(slots=True)
class Emitter:
    """Folds each event into the record `run`, then calls the subscribers; one that fails is logged.

    What it takes is made fit to be written first, here and nowhere else; `keys` are all that were known in this tree of
    runs. The end of a growing text that may be the beginning of a key is held until more comes, or something else
    happens in its run. What a run has left open is ended before the run is; after the end of the root it takes nothing.
    """

    run: Run
    subscribers: list[OnEvent]
    lock: threading.RLock
    keys: set[str] = field(default_factory=set[str], repr=False)
    _held: dict[str, _Held] = field(default_factory=dict[str, _Held], init=False, repr=False)
    _timer: threading.Timer | None = field(default=None, init=False, repr=False)
    _exit: BaseException | None = field(default=None, init=False, repr=False)

    def __call__(self, event: AgentEvent) -> None:
        with self.lock:
            if self._is_over and not isinstance(event, AgentEventSteering):
                return  # a function that was left goes on, and still writes
            self.keys |= keys_of_environment()
            grows = growth(event)
            if grows is None:
                is_end = isinstance(event, AgentEventAgentEnd) and event.run_id == self.run.run_id
                for run_id in list(self._held) if is_end else [event.run_id]:
                    self._tell_held(run_id)
                for one in endings(self.run, event) if isinstance(event, AgentEventAgentEnd) else []:
                    self._tell(one)
                self._tell(event)
            else:
                self._gather(event, *grows)
            exit_, self._exit = self._exit, None
            if exit_ is not None:
                raise exit_

    @property
    def _is_over(self) -> bool:
        return self.run.ended is not None

    def _gather(self, event: AgentEvent, target: str, text: str) -> None:
        held = self._held.get(event.run_id)
        if held is None or held.target != target:
            self._tell_held(event.run_id)
            held = self._held[event.run_id] = _Held(event, target, [])
        held.texts.append(text)
        if not isinstance(event, AgentEventToolUpdate):
            self._tell_held(event.run_id, up_to_a_key=True)
        elif self._timer is None:
            self._timer = threading.Timer(GATHERING, self._tell_gathered)
            self._timer.daemon = True
            self._timer.start()

    def _tell_gathered(self) -> None:
        with self.lock:
            self._timer = None
            for run_id in () if self._is_over else list(self._held):
                self._tell_held(run_id, up_to_a_key=True)

    def _tell_held(self, run_id: str, up_to_a_key: bool = False) -> None:
        held = self._held.pop(run_id, None)
        if held is None:
            return
        text = "".join(held.texts)
        end = beginning_of_key(text, longest_first(self.keys)) if up_to_a_key else len(text)
        if end < len(text):
            self._held[run_id] = replace(held, texts=[text[end:]])
        if end == 0:
            return
        event = with_growth(held.event, text[:end])
        if isinstance(event, AgentEventToolUpdate):
            # Outside of what the function runs in: what a listener prints would be told to it again, without end.
            Context().run(self._tell, event)
        else:
            self._tell(event)

    def _tell(self, event: AgentEvent) -> None:
        event = writable(event, longest_first(self.keys))
        fold(self.run, event)
        for subscriber in self.subscribers:
            try:
                subscriber(event)
            except Exception as error:
                log.warning("A subscriber failed on an event of kind %r: %r", event.kind, error)
                log.debug("A subscriber failed", exc_info=True)
            except BaseException as error:
                self._exit = error  # raised once all is told, and in the thread of the run

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
