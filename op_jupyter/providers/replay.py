"""Record what a provider said, and play it back: `replay:FILE` needs no network and no key.

A cassette is a JSON file of requests and replies, in order; it holds what was said and nothing of how it was reached.
"""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from op_jupyter.errors import ErrorKind, RunError
from op_jupyter.events import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    StreamEnd,
    StreamEvent,
    StreamRetry,
    apply_update,
    message_of,
    stream_of,
)
from op_jupyter.messages import AssistantMessage, Block
from op_jupyter.providers import Model, Request
from op_jupyter.redact import known_keys, writable

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Interaction:
    """One request and the reply to it."""

    request: dict[str, Any]
    reply: AssistantMessage
    error_kind: ErrorKind | None = None


@dataclass(frozen=True, slots=True)
class Cassette:
    """The content of a cassette file: one or more runs, each as the interactions it needed, in order of asking."""

    runs: list[list[Interaction]]
    format: Literal[1]


@functools.cache
def _adapter() -> TypeAdapter[Cassette]:
    from pydantic import TypeAdapter

    return TypeAdapter(Cassette)


# -------------------------------------------------------------------- record


class Recorder:
    """Keeps what every model that it wraps is asked and says in one run; `save` writes it down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interactions: list[Interaction | None] = []

    def wrap(self, model: Model) -> Model:
        """`model`, with all that it says being kept, and all that is said in runs nested under it."""

        def stream(request: Request) -> Iterator[StreamEvent]:
            with self._lock:
                position = len(self._interactions)
                self._interactions.append(None)
            content: list[Block] = []
            end = StreamEnd("error", error_message="The reply was left before its end.")
            try:
                for event in model.stream(request):
                    match event:
                        case BlockStart() | BlockDelta() | BlockEnd():
                            apply_update(content, event)
                        case StreamEnd():
                            end = event
                        case StreamRetry():
                            pass
                    yield event
            except Exception as error:
                kind = error.kind if isinstance(error, RunError) else "provider"
                end = StreamEnd("error", error_message=str(error), error_kind=kind)
                raise
            finally:
                reply = message_of(content, end, model.provider, model.name)
                interaction = Interaction(_asked(request), reply, end.error_kind)
                keys = known_keys(request.connection.api_key)
                self._interactions[position] = writable(interaction, keys)

        return replace(model, stream=stream, within=self.wrap)

    def save(self, name: str | Path) -> None:
        """Write the run into the cassette file `name`: wholly, or not at all. Folders are made as needed.

        Other runs in the file stay, but for one that began with the same question.

        Raises:
            OSError: when the file cannot be written.
        """
        path = Path(name).expanduser()
        interactions = [interaction for interaction in self._interactions if interaction]
        try:
            others = _load(str(name)).runs
        except RunError:
            others = []
        first = interactions[0].request if interactions else None
        runs = [run for run in others if run and run[0].request != first]
        content = _adapter().dump_python(Cassette([*runs, interactions], 1), mode="json")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _asked(request: Request) -> dict[str, Any]:
    """What of a request decides the reply, as JSON: so two requests are compared."""
    from pydantic_core import to_jsonable_python

    names = ("system", "messages", "tools", "tool_choice", "parallel_tool_calls", "options")
    asked: dict[str, Any] = to_jsonable_python({name: getattr(request, name) for name in names}, bytes_mode="base64")
    for message in asked["messages"]:
        message.pop("details", None)  # for the person alone, and never sent
    return writable(asked, known_keys(request.connection.api_key))


# -------------------------------------------------------------------- replay


def model(name: str) -> Model:
    """The model that answers from the cassette file `name`.

    Raises:
        RunError: of kind `setup`, when there is no such file or it is not a cassette.
    """
    interactions = [interaction for run in _load(name).runs for interaction in run]
    lock = threading.Lock()

    def stream(request: Request) -> Iterator[StreamEvent]:
        asked = _asked(request)
        with lock:
            # By what was asked and not by order: nested runs may go on at the same time.
            found = next((i for i in interactions if i.request == asked), None)
            if found is None:
                raise RunError(_mismatch(name, interactions, asked), kind="setup")
            interactions.remove(found)
        yield from stream_of(found.reply, found.error_kind)

    replaying = Model("replay", name, stream, within=lambda _: replaying)
    return replaying


def _load(name: str) -> Cassette:
    how = f"Record it: run the cell with --record {name}"
    try:
        return _adapter().validate_json(Path(name).expanduser().read_bytes())
    except OSError:
        raise RunError(f"There is no cassette {name!r}. {how}", kind="setup") from None
    except ValueError:
        raise RunError(f"{name!r} is not a cassette of op_jupyter. {how}", kind="setup") from None


def _mismatch(name: str, left: list[Interaction], asked: Any) -> str:
    how = f"If the change is meant, record again: run the cell with --record {name}"
    if not left:
        return f"The cassette {name!r} holds no reply to one more request. {how}"
    where, recorded, now = _first_difference(left[0].request, asked, "request")
    return f"The cassette {name!r} does not match: {where} was {recorded}, and is now {now}. {how}"


def _first_difference(recorded: Any, now: Any, where: str) -> tuple[str, str, str]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in [*recorded, *(key for key in now if key not in recorded)]:
            if recorded.get(key, _ABSENT) != now.get(key, _ABSENT):
                return _first_difference(recorded.get(key, _ABSENT), now.get(key, _ABSENT), f"{where}.{key}")
    if isinstance(recorded, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip_longest(recorded, now, fillvalue=_ABSENT)):
            if one != other:
                return _first_difference(one, other, f"{where}[{index}]")
    return where, _shown(recorded, now), _shown(now, recorded)


_ABSENT = object()


def _shown(value: Any, other: Any) -> str:
    """`value` from shortly before the place where it begins to differ from `other`."""
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and isinstance(other, str):
        same = next((i for i, (one, two) in enumerate(zip(value, other, strict=False)) if one != two), 0)
        start = max(0, same - 20)
        text = json.dumps(value[start:], ensure_ascii=False)
        text = f"…{text}" if start else text
    return text if len(text) <= 100 else f"{text[:100]}…"
