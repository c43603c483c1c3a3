"""What reaches into a running loop from outside: messages, stop, interrupts, and the one place where the loop waits.

Threads: `RunControl` may be used from any thread. A run that holds the main thread also owns SIGINT while it lasts.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Literal, TypeVar

from op_jupyter.errors import RunError
from op_jupyter.queued import QueuedMessages
from op_jupyter.threads import background_loop, in_thread, leave

T = TypeVar("T")


class Aborted(Exception):
    """The loop was told to stop while it waited. Inside the package only: `exec` raises what a user may catch."""


_WAKE = object()

LAST_BYTES = 0.1
"""Seconds in which what is left of a reply may arrive, so that its connection can be used again."""


class RunControl(QueuedMessages):
    """Messages into one run, and its end. Nested runs have their own, below that of the root, and end with it."""

    def __init__(self, parent: RunControl | None = None) -> None:
        super().__init__()
        self._parent = parent
        self._root: RunControl = parent._root if parent else self
        self._aborted: Literal["interrupt", "stop"] | None = None
        # The root's alone:
        self._inboxes: set[SimpleQueue[Any]] = set()
        self._threads: set[Future[Any]] = set()
        self._joined = False
        self._owns_sigint = False
        self._outside: RunControl | None = None  # the run whose callback has started this one
        self._patience = math.inf
        self._interrupts = 0
        self._stop_signal_sent = False

    # ------------------------------------------------------------ abort

    @property
    def aborted(self) -> Literal["interrupt", "stop"] | None:
        """What ended this run or one that it is nested in, or `None` while it goes on."""
        if self._aborted or self._parent is None:
            return self._aborted
        # A run in a function that was left at its timeout must not outlive the root.
        return self._parent.aborted or ("stop" if self._root._joined else None)

    def abort(self) -> None:
        """End the whole tree of runs, at once where that is possible. From any thread."""
        root = self._root
        with root._lock:
            root._aborted = root._aborted or "stop"
            root._wake()
            leaves = root._owns_sigint and not root._patience and not root._stop_signal_sent
            if leaves and not _in_main_thread() and hasattr(signal, "pthread_kill"):
                root._stop_signal_sent = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def start(self, run: Callable[[], T]) -> Future[T]:
        """Do this run in a thread of its own, with a copy of the caller's context; the root does not end before it.

        Raises:
            RunError: when the root has ended.
        """
        root = self._root
        with root._lock:
            if root._joined:
                raise RunError("The run that this one would be part of is over.", kind="setup")
            # Not in a pool, where nested runs could wait for threads that wait for them.
            thread = in_thread(run, "op_jupyter aexec")
            if root is not self:
                root._threads.add(thread)
        thread.add_done_callback(root._threads.discard)
        return thread

    def join(self) -> None:
        """Wait for the threads of nested runs, where this is the root, until the second interrupt."""
        while self._root is self and not self._joined:
            with self._lock:
                threads = tuple(self._threads)
                self._joined = not threads or self._interrupts > 1
            self.leavable(wait)(threads)
        if self._joined:
            self._wake()  # a run in a function that was left

    def abort_subtree(self) -> None:
        """End this run and those nested in it, but not the ones that it is nested in. From any thread."""
        self._aborted = self._aborted or "stop"
        self._root._wake()

    def _wake(self) -> None:
        for inbox in tuple(self._inboxes):
            inbox.put(_WAKE)

    @contextlib.contextmanager
    def owning_interrupts(self) -> Iterator[None]:
        """Let SIGINT end the run instead of tearing whatever the main thread is at.

        The handler only sets a flag, except in the body of a function (`interruptible`), where it raises, and where
        somebody else may keep the run waiting (`leavable`). Off the main thread there is nothing to own.
        """
        if not _in_main_thread() or signal.getsignal(signal.SIGINT) is None:
            yield
            return
        previous = signal.signal(signal.SIGINT, self._on_sigint)
        self._outside = _owner(previous)
        self._owns_sigint = True
        try:
            yield
        finally:
            with self._lock:
                self._owns_sigint = False
            # A signal that was sent before the lock was taken must still find our handler.
            deadline = time.monotonic() + 0.1
            while self._stop_signal_sent and time.monotonic() < deadline:
                time.sleep(0.0005)
            signal.signal(signal.SIGINT, previous)

    def _on_sigint(self, signum: int, frame: FrameType | None) -> None:
        if self._stop_signal_sent:
            self._stop_signal_sent = False
        else:
            self._interrupt()
        self._wake()
        if not self._patience or self._interrupts > self._patience:
            raise KeyboardInterrupt

    def _interrupt(self) -> None:
        self._interrupts += 1
        self._aborted = "interrupt"
        if self._outside:
            self._outside._interrupt()

    def interruptible(self, function: Callable[[], T]) -> T:
        """Call the body of a function: an abort raises `KeyboardInterrupt` in it, where it runs in the main thread."""
        return self._call(function, patience=0)

    def shielded(self, function: Callable[[], T]) -> T:
        """Call our own code from an interruptible body, without an interrupt tearing it."""
        return self._call(function, patience=math.inf)

    def leavable(self, function: Callable[[T], Any]) -> Callable[[T], None]:
        """`function`, such as a listener, which the run can end without: the second interrupt leaves it."""

        def call(argument: T) -> None:
            try:
                self._call(lambda: function(argument), patience=1)
            except KeyboardInterrupt:
                if not self.aborted:
                    raise

        return call

    def _call(self, function: Callable[[], T], patience: float) -> T:
        """Call `function`; so many interrupts are borne before one raises in it."""
        # No context manager: an interrupt in the code of one would leave the number as it is.
        root = self._root
        if not root._owns_sigint or not _in_main_thread():
            return function()
        previous = root._patience
        try:
            root._patience = patience
            if not patience and root._aborted:
                raise KeyboardInterrupt
            return function()
        finally:
            root._patience = previous
            if patience < math.inf and not _owner(signal.getsignal(signal.SIGINT)):
                signal.signal(signal.SIGINT, root._on_sigint)  # the function has put another in its place

    # ------------------------------------------------------------ the place to wait

    def receive(self, start: Callable[[], Iterator[T]], abandon: Callable[[], None]) -> Iterator[T]:
        """The items of the iterator that `start` makes, which a thread of its own reads.

        So whatever blocks in there can be left at once: when the run is aborted, `abandon` is called to free the
        thread. When the caller has what it wants, and stops iterating, the thread has some time to end by itself.

        Raises:
            Aborted: as soon as the run is.
        """
        if self.aborted:
            raise Aborted
        with self._inbox() as inbox:
            abandoned = threading.Event()

            def read() -> None:
                for item in start():
                    inbox.put(item)
                    if abandoned.is_set():
                        break

            reader = in_thread(read, "op_jupyter stream")
            reader.add_done_callback(inbox.put)
            try:
                while (item := self._wait(inbox)) is not reader:
                    yield item
            except GeneratorExit:
                wait([reader], LAST_BYTES)
                raise
            finally:
                if not reader.done():
                    abandoned.set()
                    abandon()
            reader.result()

    def run_coroutine(self, awaitable: Awaitable[T], timeout: float | None = None) -> T:
        """What `awaitable` comes to, on the background event loop and in a copy of the caller's context.

        Raises:
            TimeoutError: after `timeout` seconds; the coroutine is cancelled.
            Aborted: as soon as the run is; the coroutine is cancelled.
        """

        async def finish() -> Future[T]:
            outcome: Future[T] = Future()
            try:
                outcome.set_result(await awaitable)
            except (KeyboardInterrupt, SystemExit) as error:
                # Raised here, these two would end the event loop that all coroutine tools share.
                outcome.set_exception(error)
            return outcome

        def run() -> T:
            loop = background_loop()
            future = asyncio.run_coroutine_threadsafe(finish(), loop)
            try:
                return self.result(future, timeout, "the function was cancelled").result()
            finally:
                if not future.done():
                    future.cancel()
                    leave(loop)

        # An interrupt between the start and the wait would leave the coroutine to itself.
        return self.shielded(run)

    def run_in_thread(self, function: Callable[[], T], timeout: float) -> T:
        """What `function` returns, from a worker thread with a copy of the caller's context.

        Raises:
            TimeoutError: after `timeout` seconds; the thread goes on by itself.
            Aborted: as soon as the run is; the thread goes on by itself.
        """
        return self.result(in_thread(function, "op_jupyter tool"), timeout, "the function may still be running")

    def result(self, future: Future[T], timeout: float | None, past_timeout: str) -> T:
        """What `future` comes to.

        Raises:
            TimeoutError: after `timeout` seconds; `past_timeout` says what that means.
            Aborted: as soon as the run is.
        """
        with self._inbox() as inbox:
            future.add_done_callback(inbox.put)
            try:
                self._wait(inbox, timeout)
            except Empty:
                raise TimeoutError(f"No result after {timeout:g} s; {past_timeout}.") from None
            return future.result()

    @contextlib.contextmanager
    def _inbox(self) -> Iterator[SimpleQueue[Any]]:
        inbox: SimpleQueue[Any] = SimpleQueue()
        self._root._inboxes.add(inbox)
        try:
            yield inbox
        finally:
            self._root._inboxes.discard(inbox)

    def _wait(self, inbox: SimpleQueue[Any], timeout: float | None = None) -> Any:
        """The next item. SimpleQueue, because a signal handler may put into it while the main thread gets from it."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.aborted:
            left = None if deadline is None else min(threading.TIMEOUT_MAX, max(0, deadline - time.monotonic()))
            item = inbox.get(timeout=left)
            if item is not _WAKE:
                return item
        raise Aborted


def _owner(handler: object) -> RunControl | None:
    """The run that a handler of signals belongs to."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, RunControl) else None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
