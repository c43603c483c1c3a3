"""How a person is asked whether a call may run: in its card, else with `input()`, else not at all.

The answer from a card comes over the control comm (`channel`); what a refused call is answered is in the loop.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time

from IPython.core.error import StdinNotImplementedError

from op_jupyter.context import OnApproval, _current_run
from op_jupyter.messages import ToolCall
from op_jupyter.notebook.channel import Answer, Channel
from op_jupyter.redact import redact
from op_jupyter.tools.registry import AgentTool


def ask_in_card(channel: Channel) -> OnApproval:
    """Asks in the card of the call, for as long as somebody is there to see it; where nobody ever was, with `input()`.

    Somebody is taken to be there up to ten minutes after the last sign of a view.
    """

    def ask(call: ToolCall, tool: AgentTool) -> Answer:
        current = _current_run.get()
        assert current is not None
        with channel.asking(current.context.run_id, call.id) as answer:
            while (seconds := channel.attended_until() - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    return current.control.result(answer, seconds, "nobody has answered")
        return not channel.is_attended and ask_with_input(call, tool)

    return ask


def ask_with_input(call: ToolCall, tool: AgentTool) -> Answer:
    """Asks in a line of input, where the front end takes any; else nobody is there, and the call may not run."""
    if threading.current_thread() is not threading.main_thread():
        return False  # the kernel takes input in its main thread only
    arguments = json.dumps(call.arguments, ensure_ascii=True)
    try:
        typed = input(
            f"Let {call.name} run with {redact(arguments)}? [y/N, or a: it and all later calls of it in this run] "
        )
    except (StdinNotImplementedError, OSError, EOFError):
        return False
    answer = str(typed).strip().lower()
    return "always" if answer in ("a", "always") else answer in ("y", "yes")
