"""Every exception that a user of op_jupyter can catch.

Only exception classes live here; nothing of ours is imported, so that any module may raise them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from op_jupyter.record import Run

ErrorKind = Literal[
    "auth",
    "rate_limit",
    "quota",
    "context",
    "filter",
    "not_found",
    "connection",
    "timeout",
    "provider",
    "setup",
    "aborted",
]


class RunError(Exception):
    """A run that could not start or did not end well, in one line that says what to do.

    Attributes:
        kind: what went wrong, as one of `ErrorKind`.
        run: the record of the run as far as it got; `None` when it never started.
    """

    def __init__(self, message: str, *, kind: ErrorKind = "provider", run: Run | None = None) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.run = run


class RunAborted(RunError):
    """The run was ended by `runtime.abort()` or the Stop button."""

    def __init__(self, message: str = "The run was stopped.", *, run: Run | None = None) -> None:
        super().__init__(message, kind="aborted", run=run)


class OutputError(ValueError):
    """The model's final reply does not fit `response_format`, after one repair round.

    Attributes:
        run: the record of the run, whose last message holds the reply as the model wrote it.
    """

    def __init__(self, message: str, *, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run


class DecisionError(OutputError):
    """The model's final reply is not a valid pick from `choices`, after one repair round."""
