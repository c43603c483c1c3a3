"""The notebook as the agent's host: the names in it, and what its functions write while they run.

Nothing here parses a magic's options or draws a run.
"""

from __future__ import annotations

import contextlib
import io
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from IPython.core.displaypub import DisplayPublisher
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


@contextlib.contextmanager
def captured_output(shell: InteractiveShell, emit_output: EmitOutput) -> Iterator[None]:
    """What is printed and displayed meanwhile goes to `emit_output` as notebook outputs, and not into the cell."""
    display_pub = shell.display_pub
    shell.display_pub = _Publisher(emit_output)
    try:
        with (
            contextlib.redirect_stdout(_Stream("stdout", emit_output)),
            contextlib.redirect_stderr(_Stream("stderr", emit_output)),
        ):
            yield
    finally:
        shell.display_pub = display_pub


class _Stream(io.TextIOBase):
    def __init__(self, name: str, emit_output: EmitOutput) -> None:
        self._name = name
        self._emit_output = emit_output

    def write(self, text: str) -> int:
        if text:
            self._emit_output({"output_type": "stream", "name": self._name, "text": text})
        return len(text)

    def writable(self) -> bool:
        return True


class _Publisher(DisplayPublisher):
    def __init__(self, emit_output: EmitOutput) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # IPython's
        self._emit_output = emit_output

    def publish(self, data: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
        # Images come as bytes or as base64; a notebook holds base64.
        plain = {key: b64encode(item).decode() if isinstance(item, bytes) else item for key, item in data.items()}
        self._emit_output({"output_type": "display_data", "data": plain, "metadata": metadata or {}})

    def clear_output(self, wait: bool = False) -> None:
        pass
