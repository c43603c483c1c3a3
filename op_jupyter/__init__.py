"""op_jupyter: agents in a notebook, whose tools are the notebook's own functions.

Public names only, each imported when it is first used: importing the package loads no SDK, no IPython, no pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from op_jupyter.current import default_runtime
    from op_jupyter.errors import DecisionError, OutputError, RunAborted, RunError
    from op_jupyter.record import Run
    from op_jupyter.runtime import Runtime
    from op_jupyter.tools.decorators import agentic_function, function

__version__ = "0.1.0"

__all__ = [
    "DecisionError",
    "OutputError",
    "Run",
    "RunAborted",
    "RunError",
    "Runtime",
    "agentic_function",
    "default_runtime",
    "function",
]

_HOMES = {
    "DecisionError": "errors",
    "OutputError": "errors",
    "Run": "record",
    "RunAborted": "errors",
    "RunError": "errors",
    "Runtime": "runtime",
    "agentic_function": "tools.decorators",
    "default_runtime": "current",
    "function": "tools.decorators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "agentic_function":
        importlib.import_module(f"{__name__}.current")  # which fills the parameter of that name
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "load_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext op_jupyter`: register `%%agent`."""
    from op_jupyter.notebook import magic

    magic.load(shell)
