"""The source documents, second part: what steers the picking round by round, and how far it goes.

Where the contract fixes a deviation (how long a forced choice holds, what the cap counts), its version is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from op_jupyter import DecisionError, Runtime, agent_loop
from op_jupyter.providers import openai_chat
from op_jupyter.testing import call
from tests.conversation import add, offered, playing, results, the_run
from tests.providers.adapter import KEY, Call
from tests.providers.chat_wire import OpenAIChat
from tests.providers.wire_server import WireServer

NAMED: Any = {"type": "function", "name": "add"}


def now() -> str:
    """Say what time it is."""
    return "noon"


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer().running() as server:
        yield server


def openai(server: WireServer) -> Runtime:
    return Runtime(openai_chat.model("gpt-test"), api_key=KEY, base_url=f"{server.url}/v1")


# -------------------------------------------------------------------- tool_choice


def test_tool_choice_is_auto_by_default_and_the_model_decides() -> None:
    model, requests = playing([call("now")], "It is noon.", "I need no clock.")
    assert Runtime(model).exec("?", tools=[now]) == "It is noon."
    assert Runtime(model).exec("?", tools=[now]) == "I need no clock."
    assert [request.tool_choice for request in requests] == ["auto"] * 3


def test_required_means_that_a_function_must_be_picked_and_holds_until_one_is() -> None:
    model, requests = playing([call("no_such")], [call("now")], [call("now")], "It is noon.")
    assert Runtime(model).exec("?", tools=[now], tool_choice="required") == "It is noon."
    assert [request.tool_choice for request in requests] == ["required", "required", "auto", "auto"]


def test_none_means_text_only() -> None:
    model, requests = playing([call("now")], "I would have to look.")
    runtime = Runtime(model)
    assert runtime.exec("?", tools=[now], tool_choice="none") == "I would have to look."
    assert [request.tool_choice for request in requests] == ["none", "none"]
    assert results(the_run(runtime))[0].is_error and not the_run(runtime).values


def test_a_named_function_is_forced_until_it_is_picked() -> None:
    model, requests = playing([call("now")], [call("add", a=1, b=2)], "3")
    assert Runtime(model).exec("?", tools=[now, add], tool_choice=NAMED) == "3"
    assert [request.tool_choice for request in requests] == [NAMED, NAMED, "auto"]


def test_a_choice_can_be_kept_for_every_round() -> None:
    model, requests = playing([call("now")], [call("now")])
    Runtime(model).exec("?", tools=[now], tool_choice="required", reset_tool_choice=False, max_iterations=2)
    assert [request.tool_choice for request in requests] == ["required", "required"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("none", "none"),
        (NAMED, {"type": "function", "function": {"name": "add"}}),
    ],
    ids=["auto", "required", "none", "named"],
)
def test_tool_choice_is_forwarded_to_openai_in_its_own_protocol_shape(
    choice: Any, sent: Any, server: WireServer
) -> None:
    server.script = [OpenAIChat().answer("ok")]
    openai(server).exec("1 + 2?", tools=[add], tool_choice=choice)
    assert server.asked[0].body["tool_choice"] == sent


# -------------------------------------------------------------------- parallel_tool_calls, max_iterations, choices


def test_parallel_tool_calls_false_forbids_several_picks_in_one_round() -> None:
    model, requests = playing([call("add", a=1, b=1), call("add", a=2, b=2)], "2")
    runtime = Runtime(model)
    runtime.exec("?", tools=[add], parallel_tool_calls=False)
    assert [request.parallel_tool_calls for request in requests] == [False, False]
    assert [result.is_error for result in results(the_run(runtime))] == [False, True]
    assert list(the_run(runtime).values.values()) == [2]


def test_parallel_tool_calls_false_is_sent_where_the_provider_has_the_knob(server: WireServer) -> None:
    both = OpenAIChat().answer(Call("c1", "now"), Call("c2", "now"))
    server.script = [both, OpenAIChat().answer("Noon.")]
    runtime = openai(server)
    assert runtime.exec("?", tools=[now], parallel_tool_calls=False) == "Noon."
    assert [asked.body["parallel_tool_calls"] for asked in server.asked] == [False, False]
    assert [result.is_error for result in results(the_run(runtime))] == [False, True]


@pytest.mark.parametrize(("asked_for", "rounds"), [(7, 7), (49, 49), (50, 50), (51, 50), (0, 1), (-5, 1), (None, 50)])
def test_the_effective_cap_is_the_smaller_of_50_and_max_iterations_and_at_least_1(
    asked_for: int | None, rounds: int
) -> None:
    model, requests = playing(*[[call("now")]] * 60)
    Runtime(model).exec("?", tools=[now], max_iterations=asked_for)
    assert len(requests) == rounds <= agent_loop.MAX_INNER_ITERATIONS


def test_the_cap_counts_every_request_of_the_exec_follow_ups_and_repairs_included() -> None:
    model, requests = playing([call("now")], "none of them", "none of them", "none of them")
    later = iter([["more"], []])
    with pytest.raises(DecisionError):
        Runtime(model).exec(
            "?", tools=[now], choices=["yes", "no"], get_follow_up_messages=lambda: next(later), max_iterations=3
        )
    assert len(requests) == 3


def test_choices_end_the_run_with_a_structured_decision_after_picking_as_usual() -> None:
    def book(day: str) -> str:
        """Book a table."""
        return f"booked for {day}"

    model, requests = playing([call("now")], '{"call": "book", "day": "Sunday"}')
    runtime = Runtime(model)
    assert runtime.exec("Book or wait?", tools=[now], choices=[book, "wait"]) == "booked for Sunday"
    assert offered(requests[1]) == ["now"]
    assert results(the_run(runtime))[0].text == "noon"
