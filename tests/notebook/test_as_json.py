"""What views are told beside the record: what a run cost, where its model's price is known, and numbers as text."""

from __future__ import annotations

import json

import pytest

from op_jupyter import Run
from op_jupyter.messages import AssistantMessage, TextContent, ToolCall, Usage
from op_jupyter.notebook.bundle import MIME_TYPE, mime_bundle
from op_jupyter.notebook.prices import cost
from op_jupyter.record import AssistantStep, CallStep

IN_2026 = 1_780_000_000.0
MILLION = 1_000_000


def ran(model: str, usage: Usage) -> Run:
    reply = AssistantStep(
        round=1, message=AssistantMessage([TextContent("Hi")], usage=usage), started=IN_2026, ended=IN_2026 + 1
    )
    return Run(run_id=model, model=model, steps=[reply], rounds=1, stop_reason="stop")


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("openai:gpt-4o", 2.5 + 10),
        ("openai-responses:gpt-4o", 2.5 + 10),
        ("anthropic:claude-opus-4-5", 5 + 25),
        ("bedrock:us.amazon.nova-pro-v1:0", 0.8 + 3.2),
    ],
)
def test_a_reply_costs_what_its_seller_takes_for_the_tokens(model: str, dollars: float) -> None:
    # By the vendors' price lists of 2026, a million tokens each way.
    assert cost(model, Usage(input=MILLION, output=MILLION), IN_2026) == pytest.approx(dollars)


def test_what_was_read_from_a_cache_costs_less_and_what_was_written_to_it_more() -> None:
    def of(**tokens: int) -> float:
        found = cost("anthropic:claude-sonnet-4-5", Usage(**tokens), IN_2026)
        assert found is not None
        return found

    assert of(cache_read=1000) < of(input=1000) < of(cache_write=1000)
    assert of(input=500, cache_read=500) == pytest.approx(of(input=500) + of(cache_read=500))


@pytest.mark.parametrize("model", ["openai:my-own", "openai:", "ollama:gpt-4o", "local:", "scripted:", "", "nonsense"])
def test_where_nobody_knows_the_price_there_is_none(model: str) -> None:
    assert cost(model, Usage(input=1, output=1), IN_2026) is None


def test_costs_are_kept_with_the_times_those_of_nested_runs_too() -> None:
    run = ran("openai:gpt-4o", Usage(input=MILLION))
    run.children = {"c1": [ran("anthropic:claude-opus-4-5", Usage(output=MILLION))]}
    data, metadata = mime_bundle(run)
    varying = metadata[MIME_TYPE]
    assert varying["steps"][0]["cost"] == pytest.approx(2.5)
    assert varying["children"]["c1"][0]["steps"][0]["cost"] == pytest.approx(25)
    assert "cost" not in json.dumps(data)


def test_a_number_that_a_browser_cannot_hold_is_shown_by_its_digits() -> None:
    call = ToolCall("c1", "drop", {"id": 12345678901234567890, "ids": [2**53, 2**53 + 1], "keep": True})
    run = ran("local:", Usage())
    step = CallStep(round=1, call=call, started=IN_2026)
    run.steps.append(step)
    data, _ = mime_bundle(run)
    shown = data[MIME_TYPE]["steps"][1]["call"]["arguments"]
    assert shown == {"id": "12345678901234567890", "ids": [2**53, "9007199254740993"], "keep": True}
    assert step.call.arguments["id"] == 12345678901234567890
