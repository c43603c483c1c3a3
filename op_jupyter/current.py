"""The Runtime of whoever names none: in a run that run's own, in a notebook the notebook's, else one with no settings.

A Runtime itself is made in `runtime`.
"""

from __future__ import annotations

from op_jupyter.context import _current_context
from op_jupyter.runtime import Runtime
from op_jupyter.tools import decorators

_default_runtime: Runtime | None = None


def default_runtime() -> Runtime:
    """The Runtime outside of any run: in a notebook the notebook's, else one with no settings."""
    global _default_runtime
    if _default_runtime is None:
        _default_runtime = Runtime()
    return _default_runtime


def set_default_runtime(runtime: Runtime) -> None:
    """Let `runtime` be the one that functions get outside of a run."""
    global _default_runtime
    _default_runtime = runtime


def current_runtime() -> Runtime:
    """The Runtime of the run that the caller's code runs under, else the default one."""
    context = _current_context.get()
    runtime: Runtime = context.runtime if context else default_runtime()
    return runtime


decorators.runtime_provider = current_runtime
