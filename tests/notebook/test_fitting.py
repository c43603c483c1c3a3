"""However long a run was, the notebook's file stays small, and what it does not have is said where it was."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from op_jupyter import Run
from op_jupyter.messages import (
    AssistantMessage,
    ImageContent,
    InputBlock,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.notebook.bundle import MIME_TYPE, MOST, mime_bundle
from op_jupyter.record import AssistantStep, CallStep, Step, UserStep

FORMS = (MIME_TYPE, "text/html", "text/plain")
SENTENCE = "I look at the months of the year, one after the other, and at the *cities*. "
IMAGE = bytes(range(256)) * 1200


def run_of(rounds: int, *, said: str = "So.", images: int = 0, nested: int = 0, name: str = "r") -> Run:
    """A run that calls a function in each round but the last; `nested` of its calls hold a run of 50 rounds."""
    steps: list[Step] = [UserStep(round=1, message=UserMessage("Look."), time=1.0)]
    children: dict[str, list[Run]] = {}
    for number in range(1, rounds + 1):
        call = ToolCall(f"{name}-{number}", "look", {"month": number})
        is_last = number == rounds
        reply = AssistantMessage([TextContent(said)] if is_last else [TextContent(said), call])
        steps.append(AssistantStep(round=number, message=reply, started=1.0, ended=2.0))
        if not is_last:
            content: list[InputBlock] = [TextContent(f"month {number}: 120")]
            content += [ImageContent(IMAGE, "image/png")] * (number <= images)
            result = ToolResultMessage(call.id, call.name, content)
            steps.append(CallStep(round=number, call=call, started=1.0, ended=2.0, state="ok", result=result))
            if number <= nested:
                children[call.id] = [run_of(50, said=said, name=f"{name}-{number}")]
    return Run(run_id=name, rounds=rounds, steps=steps, stop_reason="stop", children=children)


def in_file(bundle: tuple[dict[str, Any], dict[str, Any]]) -> int:
    """How large a notebook with this output is, as Jupyter writes it."""
    import nbformat  # its functions have no types

    output = nbformat.v4.new_output("display_data", bundle[0], metadata=bundle[1])  # type: ignore[no-untyped-call]  # as above
    cell = nbformat.v4.new_code_cell("%%agent", outputs=[output])  # type: ignore[no-untyped-call]  # as above
    notebook = nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]  # as above
    return len(nbformat.writes(notebook).encode())  # type: ignore[no-untyped-call]  # as above


def written(bundle: tuple[dict[str, Any], dict[str, Any]], form: str) -> str:
    """What stands in one form of the output."""
    return json.dumps(bundle[0][form], ensure_ascii=False)


LARGE = {
    "1,050 rounds of 50,000 chunks": run_of(50, said=SENTENCE * 12, nested=20),
    "a line of 10 MB": run_of(3, said="x" * 10_000_000),
    "100 images of 300 kB": run_of(150, images=100),
    "all of that": run_of(110, said=SENTENCE * 40, images=100, nested=20),
    "text that is written much longer": run_of(300, said="\x01" * 2_000),
    "a table of 20,000 cells": run_of(60, said="|a" * 50 + "\n" + "|--" * 50 + "\n" + ("|" * 50 + "\n") * 400),
    "5,000 rounds": run_of(5_000),
    "100,000 messages that came too late": Run(run_id="r", undelivered=[UserMessage("late")] * 100_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_file_stays_under_5_mb_and_the_run_is_whole_in_the_kernel(name: str) -> None:
    run = LARGE[name]
    before = run.to_json()
    bundle = mime_bundle(run)
    assert in_file(bundle) < MOST + 100_000 < 5_000_000
    assert run.to_json() == before
    assert bundle == mime_bundle(run)


def test_a_run_that_is_small_is_kept_whole() -> None:
    run = run_of(20, said=SENTENCE * 10, images=3)
    bundle = mime_bundle(run)
    assert [form for form in FORMS if "left out" in written(bundle, form)] == []
    assert "left_out" not in bundle[0][MIME_TYPE]
    assert [step["round"] for step in bundle[0][MIME_TYPE]["steps"]] == [step.round for step in run.steps]


def test_of_a_very_long_text_the_beginning_and_the_end_are_kept_and_how_much_is_gone_is_said() -> None:
    bundle = mime_bundle(run_of(2, said=f"first {'x' * 10_000_000} last"))
    (said, *_) = [step["message"]["content"][0]["text"] for step in bundle[0][MIME_TYPE]["steps"][1:2]]
    assert said.startswith("first x") and said.endswith("x last")
    said_of_it = re.search(r"\n\[… ([\d,]+) characters were left out of the notebook file …\]\n", said)
    gone = int(said_of_it[1].replace(",", "")) if said_of_it else 0
    assert said.count("x") + gone == 10_000_000
    # Texts that are not long stay as they are.
    assert bundle[0][MIME_TYPE]["steps"][2]["result"]["content"][0]["text"] == "month 1: 120"


def test_the_last_images_are_kept_and_each_that_is_not_is_said_where_it_was() -> None:
    bundle = mime_bundle(run_of(150, images=100))
    steps = bundle[0][MIME_TYPE]["steps"]
    kinds = [step["result"]["content"][1]["kind"] for step in steps if step["kind"] == "call" and step["round"] <= 100]
    kept = kinds.count("image")
    assert kept > 1 and kinds == ["text"] * (100 - kept) + ["image"] * kept
    for form in FORMS:
        assert written(bundle, form).count("an image of 307 kB was left out of the notebook file") >= 100 - kept


def test_middle_rounds_of_nested_runs_go_before_those_of_the_run_and_it_is_said_which() -> None:
    bundle = mime_bundle(run_of(110, said=SENTENCE * 40, nested=20))
    record = bundle[0][MIME_TYPE]
    assert "left_out" not in record and {step["round"] for step in record["steps"]} == {*range(1, 111)}
    (nested,) = record["children"]["r-1"]
    ((first, last),) = nested["left_out"]
    assert {step["round"] for step in nested["steps"]} == {*range(1, first), *range(last + 1, 51)}
    for form in ("text/html", "text/plain"):
        assert bundle[0][form].count(f"Rounds {first} to {last} were left out of the notebook file.") == 20


def test_the_metadata_has_a_place_for_each_step_that_is_kept() -> None:
    data, metadata = (part[MIME_TYPE] for part in mime_bundle(run_of(5_000)))
    assert data["left_out"] and len(metadata["steps"]) == len(data["steps"])


def test_question_and_answer_are_kept_of_a_round_in_which_there_is_too_much() -> None:
    run = run_of(1, said="That was it.")
    call = ToolCall("c", "look", {})
    run.steps[1:1] = [CallStep(round=1, call=call, started=1.0, state="ok") for _ in range(50_000)]
    data, _ = mime_bundle(run)
    for form in ("text/html", "text/plain"):
        assert all(said in data[form] for said in ("Look.", "Round 1 was left out", "That was it."))


def test_1_050_rounds_are_drawn_in_much_less_than_a_second() -> None:
    run = LARGE["1,050 rounds of 50,000 chunks"]
    mime_bundle(run_of(2))
    started = time.process_time()
    mime_bundle(run)
    assert time.process_time() - started < 1.5
