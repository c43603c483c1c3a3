"""The record that events fold into, looked at by itself."""

from __future__ import annotations

from typing import Any

import pytest

from op_jupyter import Run
from op_jupyter.events import (
    AgentEvent,
    AgentEventAgentStart,
    AgentEventMessageUpdate,
    AgentEventRetry,
    AgentEventToolUpdate,
    AgentEventTurnStart,
    BlockDelta,
)
from op_jupyter.record import fold
from tests.conversation import Conversation

HERE: dict[str, Any] = {"run_id": "a", "parent_call_id": None}


def test_a_run_is_shown_in_one_line() -> None:
    conversation = Conversation("It\nrains. " * 20)
    conversation.exec()
    shown = repr(conversation.run)
    assert shown.startswith("<Run: stop, rounds=1, text='It rains. It rains.") and len(shown) < 130
    assert repr(Run(run_id="a")) == "<Run: under way, rounds=0, text=''>"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (AgentEventTurnStart(run_id="b", parent_call_id=None, round=1), "belongs to no run that has started: 'b'"),
        (
            AgentEventAgentStart(run_id="c", parent_call_id="1", parent_run_id="b", model="", tools=[], history=[]),
            "belongs to no run that has started: 'b'",
        ),
        (AgentEventMessageUpdate(**HERE, update=BlockDelta(0, "x")), "updated before it started"),
        (AgentEventToolUpdate(**HERE, call_id="1", output={}), "Call '1' was updated before it started"),
    ],
)
def test_an_event_without_what_it_is_about_is_an_error(event: AgentEvent, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fold(Run(run_id="a"), event)


def test_a_retry_stands_in_the_record_and_is_no_message() -> None:
    run = Run(run_id="a")
    fold(run, AgentEventRetry(**HERE, attempt=1, delay=0.5, reason="overloaded"))
    assert [step.kind for step in run.steps] == ["retry"] and run.messages == []
    assert Run.from_json(run.to_json()) == run
