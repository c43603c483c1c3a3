"""What a person says to a run under way, until the loop takes it.

Thread-safe queues, and nothing else; what stops a run, and where it waits, is in `control`.
"""

from __future__ import annotations

import threading

from op_jupyter.messages import UserMessage


class QueuedMessages:
    """Steering messages and follow-ups for one run. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steering: list[UserMessage] = []
        self._follow_ups: list[UserMessage] = []
        self._closed = False

    def steer(self, message: UserMessage) -> bool:
        """Queue a message for the next request; `False` when the run is over and takes none."""
        return self._queue(self._steering, message)

    def follow_up(self, message: UserMessage) -> bool:
        """Queue a message for when the run would end; `False` when it is over and takes none."""
        return self._queue(self._follow_ups, message)

    def _queue(self, queue: list[UserMessage], message: UserMessage) -> bool:
        with self._lock:
            if not self._closed:
                queue.append(message)
            return not self._closed

    def get_steering_messages(self) -> list[UserMessage]:
        """Take the queued steering messages, in order."""
        return self._take(self._steering)

    def get_follow_up_messages(self) -> list[UserMessage]:
        """Take the queued follow-ups, in order."""
        return self._take(self._follow_ups)

    def _take(self, queue: list[UserMessage]) -> list[UserMessage]:
        with self._lock:
            taken = queue[:]
            queue.clear()
            return taken

    def close_if_idle(self) -> bool:
        """Take no more messages, unless one waits: then `False`, and the run has to go on."""
        with self._lock:
            self._closed = not self._steering and not self._follow_ups
            return self._closed

    def close(self) -> list[UserMessage]:
        """Take no more messages, and return those that nobody took."""
        with self._lock:
            self._closed = True
            left = [*self._steering, *self._follow_ups]
            self._steering.clear()
            self._follow_ups.clear()
            return left
