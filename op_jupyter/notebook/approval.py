"""How a person is asked whether a call may run: in its card, else with `input()`, else not at all.

The answer from a card comes over the control comm (`channel`); what a refused call is answered is in the loop.
"""

from __future__ import annotations

import json
import threading
from typing import cast

from IPython.core.error import StdinNotImplementedError

from op_jupyter.context import _current_run
from op_jupyter.emit import Emitter
from op_jupyter.messages import ToolCall
from op_jupyter.notebook.channel import channel_of
from op_jupyter.redact import redact
from op_jupyter.tools.registry import AgentTool


def ask_person(call: ToolCall, tool: AgentTool) -> bool:
    """Whether the person in front of the notebook lets `call` run. Without anybody there, it may not.

    It is asked in the card for as long as a view is there, up to ten minutes after the last sign of one.
    """
    current = _current_run.get()
    assert current is not None
    channel = channel_of(cast(Emitter, current.emit).run.run_id)
    if channel:
        allowed = current.control.wait_for_approval(current.context.run_id, call.id, channel.attended_until)
        if channel.is_attended or allowed is not None:
            return allowed is True
    return _asked_with_input(call)


def _asked_with_input(call: ToolCall) -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False  # the kernel takes input in its main thread only
    arguments = json.dumps(call.arguments, ensure_ascii=True)
    try:
        answer = input(f"Let {call.name} run with {redact(arguments)}? [y/N] ")
    except (StdinNotImplementedError, OSError, EOFError):
        return False
    return answer.strip().lower() in ("y", "yes")
