"""The threads that functions run in when they do not run in the caller's.

Nothing here knows of runs; what waits for a thread, and leaves it when a run is stopped, is `control`.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


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


@functools.cache
def background_loop() -> asyncio.AbstractEventLoop:
    """The event loop that coroutine tools run on; it lives as long as the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="op_jupyter coroutines", daemon=True).start()
    return loop


def on_background_loop() -> bool:
    """Whether the caller runs on the event loop of the coroutine tools, which must not be blocked."""
    return threading.current_thread().name == "op_jupyter coroutines"
