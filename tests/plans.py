"""Plans of what a model says, functions do and a person sends, and when: data, and the hypothesis strategy for them.

How a plan is played, and what must hold then, is in `test_property_loop`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from op_jupyter.messages import Block, TextContent, ThinkingContent
from op_jupyter.providers import ToolChoice

HERE = ["steer", "follow up", "abort", "interrupt"]
ANYWHERE = [*HERE, *(f"{action} beside" for action in HERE)]
"""What happens in the thread at hand, or in one beside it."""

FAILURES = ["raise", "raise without words", "leave", "raise an interrupt"]

EVENTS = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_start",
    "tool_update",
    "tool_end",
    "approval",
    "steering",
    "turn_end",
    "agent_end",
]

VALUES = [
    "text",
    "nothing",
    "blank",
    "data",
    "image",
    "image and text",
    "no repr",
    "generator",
    "half a character",
    "an exception",
    "much",
]

OFFERED = ["plain", "coroutine", "guarded", "threaded", "late"]
OTHERS = ["denied", "deferred", "tool_search", "nowhere", "no such name!", ""]


@dataclass(frozen=True)
class Pick:
    """A call of the model, and what its function does: what it `does`, then a run of its own, or else a value."""

    name: str = "plain"
    does: tuple[str, ...] = ()
    nested: Nested | None = None
    gives: str = "text"
    swallows: bool = False
    id: str | None = None
    arguments: Literal["fit", "do not fit", "are no object"] = "fit"


@dataclass(frozen=True)
class Reply:
    """What the model says, how that ends, and what happens in its thread before the events at these positions.

    One that is lost, raises or leaves breaks off before the event at `cut`.
    """

    blocks: tuple[Block | Pick, ...] = (TextContent("The end."),)
    end: Literal["whole", "length", "error", "lost", "raises", "leaves"] = "whole"
    cut: int = 100
    does: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Nested:
    """A run that a function opens."""

    replies: tuple[Reply, ...] = ()
    most: int | None = None
    how: Literal["same runtime", "other runtime", "copied context"] = "same runtime"


@dataclass(frozen=True)
class Question:
    """One `exec`. `at` says what happens at the nth event of a kind; the next question goes on from its messages."""

    replies: tuple[Reply, ...] = ()
    at: tuple[tuple[str, int, str], ...] = ()
    steering: tuple[tuple[str, ...], ...] = ()
    follow_ups: tuple[tuple[str, ...], ...] = ()
    approval: tuple[str, ...] = ("yes",)
    runner: Literal["main thread", "worker thread", "aexec"] = "main thread"
    most: int | None = None
    choice: ToolChoice = "auto"
    reset: bool = True
    parallel: bool | None = None
    wants_json: bool = False
    goes_on: bool = True


def mostly(default: Any, *others: Any, times: int = 3) -> st.SearchStrategy[Any]:
    """`default`, or, one time in `times`, one of the others."""
    return st.sampled_from([*[default] * (times - 1) * len(others), *others])


def few(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=most).map(tuple)


BLOCKS: st.SearchStrategy[Block] = st.sampled_from(
    [
        TextContent("Let me see."),
        TextContent(""),
        TextContent(" \n"),
        TextContent("{}"),
        TextContent("", provider_data={"signature": "t"}),
        ThinkingContent("Hm."),
        ThinkingContent(" "),
        ThinkingContent("", provider_data={"signature": "s"}),
        ThinkingContent("", redacted=True, provider_data={"data": "r"}),
    ]
)


def replies(depth: int) -> st.SearchStrategy[tuple[Reply, ...]]:
    """What a model says in a run, in which functions open runs, so many deep."""
    nested = st.builds(
        Nested,
        replies=replies(depth - 1) if depth else st.just(()),
        most=mostly(None, 0, 1, 2),
        how=st.sampled_from(["same runtime", "other runtime", "copied context"]),
    )
    picks = st.builds(
        Pick,
        name=st.sampled_from(OFFERED) | mostly("plain", *OTHERS),
        does=few(st.sampled_from([*ANYWHERE, *FAILURES])),
        nested=st.one_of(st.none(), st.none(), nested) if depth else st.none(),
        gives=st.sampled_from(VALUES),
        swallows=mostly(False, True),
        id=mostly(None, "", "same", "call_1", "call_2"),
        arguments=mostly("fit", "do not fit", "are no object", times=6),
    )
    reply = st.builds(
        Reply,
        blocks=few(st.one_of(BLOCKS, picks, picks), 3),
        end=mostly("whole", "length", "error", "lost", "raises", "leaves", times=8),
        cut=mostly(100, *range(8)),
        does=few(st.tuples(st.integers(0, 8), st.sampled_from([*ANYWHERE, "abort and wait"])), 1),
    )
    return few(reply, 4)


GIVEN = mostly((), ("give",), ("give", "give"), *((action,) for action in [*ANYWHERE, "raise"]), times=2)

QUESTIONS = st.builds(
    Question,
    replies=replies(2),
    at=few(st.tuples(st.sampled_from(EVENTS), st.integers(1, 6), st.sampled_from(HERE))),
    steering=few(GIVEN, 4),
    follow_ups=few(GIVEN),
    approval=mostly(("yes",), (), *((action, "yes") for action in [*ANYWHERE, "raise"])),
    runner=mostly("main thread", "worker thread", "aexec"),
    most=mostly(None, -1, 1, 2, 3, 4),
    choice=mostly("auto", "required", "none", {"type": "function", "name": "plain"}),
    reset=mostly(True, False),
    parallel=mostly(None, False),
    wants_json=mostly(False, True, times=6),
    goes_on=mostly(True, False),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Question]:
    """Questions that follow one another. A copy, since hypothesis is slow to print what it has built so deep."""
    return deepcopy(draw(st.lists(QUESTIONS, min_size=1, max_size=3)))
