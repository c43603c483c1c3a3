"""One agent run through every provider that a real server speaks: llama.cpp, with the embedded model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from op_jupyter import Run, Runtime
from op_jupyter.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from op_jupyter.providers._model_files import DEFAULT_MODEL
from tests.test_quickstart import running_llama_server

# Half a gigabyte, which a person may not have fetched; CI always has.
pytestmark = pytest.mark.skipif(
    "CI" not in os.environ and not DEFAULT_MODEL.path.exists(), reason="the embedded model is not here"
)
SPOKEN = {"openai": "/v1", "openai-responses": "/v1", "anthropic": ""}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_llama_server() as address:
        yield address


def best_product(city: str) -> str:
    """Find the product that sold best in a city."""
    return "tea"


def calls_of(run: Run) -> list[ToolCall]:
    return [call for message in run.messages if isinstance(message, AssistantMessage) for call in message.tool_calls]


def ask(server: str, provider: str, prompt: str, **settings: Any) -> tuple[str, Run]:
    asked = Runtime(model=f"{provider}:qwen", base_url=server + SPOKEN[provider])
    answer = asked.exec(prompt, tools=[best_product], **settings)
    assert asked.last_run is not None
    return answer, asked.last_run


@pytest.mark.parametrize("provider", SPOKEN)
def test_an_agent_question_is_answered_with_the_help_of_a_function(server: str, provider: str) -> None:
    answer, run = ask(server, provider, "Which product sold best in Bergen?")
    assert "tea" in answer
    assert [(call.name, call.arguments) for call in calls_of(run)] == [("best_product", {"city": "Bergen"})]
    assert [message.text for message in run.messages if isinstance(message, ToolResultMessage)] == ["tea"]
    assert (run.rounds, run.stop_reason) == (2, "stop")
    assert run.usage.output > 0


def test_a_conversation_goes_on_with_each_of_the_others(server: str) -> None:
    history: list[Message] = []
    for provider in ("openai-responses", "anthropic", "openai", "openai-responses"):
        answer, run = ask(server, provider, "Which product sold best in Bergen?", history=history)
        history = run.messages
        assert "tea" in answer
        assert run.stop_reason == "stop"
    assert [call.arguments for call in calls_of(run)] == [{"city": "Bergen"}] * 4
