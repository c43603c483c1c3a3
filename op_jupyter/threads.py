"""The threads that functions run in when they do not run in the caller's.

Nothing here knows of runs; what waits for a thread, and leaves it when a run is stopped, is `control`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 0.1
"""Seconds after which an event loop that does nothing is taken to be blocked."""


def in_thread(function: Callable[[], T], name: str) -> Future[T]:
    """Call `function` in a thread of its own, with a copy of the caller's context."""
    future: Future[T] = Future()
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function))
        except StopIteration as error:
            # asyncio cannot carry one from a thread to a task: whoever awaits it would wait for ever.
            failure = RuntimeError("StopIteration")
            failure.__cause__ = error
            future.set_exception(failure)
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future


_loop: asyncio.AbstractEventLoop | None = None
_sign_of_life: Future[None] | None = None
_lock = threading.Lock()


def background_loop() -> asyncio.AbstractEventLoop:
    """The event loop that coroutine tools run on: the same one, unless a coroutine blocks it that was left."""
    global _loop, _sign_of_life
    with _lock:
        if _sign_of_life is not None:
            if wait([_sign_of_life], PATIENCE).not_done:
                _loop = None
            _sign_of_life = None
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="op_jupyter coroutines", daemon=True).start()
        return _loop


def leave(loop: asyncio.AbstractEventLoop) -> None:
    """Note that a coroutine was left on `loop`, which it may block: whoever comes next would wait for its end."""
    global _sign_of_life
    with _lock:
        if loop is _loop:
            _sign_of_life = Future()
            loop.call_soon_threadsafe(_sign_of_life.set_result, None)


def on_background_loop() -> bool:
    """Whether the caller runs on the event loop of the coroutine tools, which must not be blocked."""
    return threading.current_thread().name == "op_jupyter coroutines"
