"""The notebook as the agent's host: the names in it, and what its functions write while they run.

Nothing here parses a magic's options or draws a run.
"""

from __future__ import annotations

import contextlib
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from op_jupyter.tools.registry import AgentTool, as_tool, registered
from op_jupyter.tools.results import to_text

EmitOutput = Callable[[dict[str, Any]], None]

_NAME_IN_BRACES = re.compile(r"\{\{([^\W\d]\w*)\}\}|\{([^\W\d]\w*)\}")


def expand_names(text: str, namespace: Mapping[str, Any]) -> str:
    """`text` with each `{name}` that is defined replaced by its value, and each `{{name}}` by `{name}`.

    Nothing else in braces is touched, and what has been put in is not expanded again.
    """

    def value(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return f"{{{escaped}}}"
        return to_text(namespace[name]) if name in namespace else match.group()

    return _NAME_IN_BRACES.sub(value, text)


def tools_named(names: list[str], namespace: Mapping[str, Any]) -> list[AgentTool]:
    """The functions of these names: registered ones, and any other function in `namespace`.

    Raises:
        ValueError: when there is no function of a name; says which there are.
        TypeError: when a model could not call what the name stands for.
    """
    decorated = {tool.name: tool for tool in registered()}
    found: list[AgentTool] = []
    for name in names:
        if name in decorated:
            found.append(decorated[name])
        elif callable(namespace.get(name)):
            found.append(as_tool(namespace[name]))
        else:
            there_are = f"There are: {', '.join(decorated)}." if decorated else "None is decorated with @function yet."
            raise ValueError(f"There is no function {name!r} in this notebook. {there_are}")
    return found


_output_of_call: ContextVar[EmitOutput | None] = ContextVar("op_jupyter_output_of_call", default=None)


@contextlib.contextmanager
def captured_output(shell: InteractiveShell, emit_output: EmitOutput) -> Iterator[None]:
    """What the caller prints and displays goes to `emit_output` as notebook outputs, and not into the cell.

    That is so wherever the context is copied, in threads and coroutines, and nowhere else. The streams and the
    publisher stay in their place: other threads go on using them, and messages that come in meanwhile set their parent.
    """
    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), _Routed):
            setattr(sys, name, _Routed(name, getattr(sys, name)))
    if "publish" not in vars(shell.display_pub):
        # The method alone is replaced: another publisher would lack what a kernel calls on its own.
        shell.display_pub.publish = partial(_publish, shell.display_pub.publish)  # type: ignore[method-assign]
    token = _output_of_call.set(emit_output)
    try:
        yield
    finally:
        _output_of_call.reset(token)


class _Routed:
    """A stream that goes where the function that writes has its output, and else where it went before."""

    def __init__(self, name: str, stream: Any) -> None:
        self._name = name
        self._stream = stream

    def write(self, text: str) -> int:
        emit_output = _output_of_call.get()
        if emit_output is None:
            written: int = self._stream.write(text)
            return written
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            emit_output({"output_type": "stream", "name": self._name, "text": text})
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _publish(
    display: Callable[..., None], data: dict[str, Any], metadata: dict[str, Any] | None = None, *rest: Any, **more: Any
) -> None:
    from pydantic_core import to_jsonable_python

    emit_output = _output_of_call.get()
    if emit_output is None:
        display(data, metadata, *rest, **more)
        return
    # Images come as bytes or as base64; a notebook holds base64.
    plain = {key: b64encode(item).decode() if isinstance(item, bytes) else item for key, item in data.items()}
    output = {"output_type": "display_data", "data": plain, "metadata": metadata or {}}
    emit_output(to_jsonable_python(output, fallback=repr))
