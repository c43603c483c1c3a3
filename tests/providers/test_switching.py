"""A conversation that begins with one provider and goes on with another: what is sent then is valid."""

from __future__ import annotations

import json
from base64 import b64encode
from importlib import import_module
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from op_jupyter import RunError
from op_jupyter.history import replayable
from op_jupyter.messages import AssistantMessage, ImageContent, Message, ThinkingContent
from op_jupyter.providers import PROVIDERS, Request
from tests.conversation import the_run
from tests.providers import anthropic_wire, bedrock_wire, chat_wire, gemini_wire, responses_wire
from tests.providers.adapter import Call
from tests.providers.adapters import ADAPTERS
from tests.providers.validity import CHECKS
from tests.providers.wire_server import WireServer
from tests.test_cases_history import histories

pytestmark = pytest.mark.usefixtures("no_account")
PICTURE = b"\x89PNG of a plot"
THOUGHT = "A plot would tell."


def calls(call: Any, first: int, prefix: str) -> list[Any]:
    names = ("plot", "fail", "never")
    return [event for n, name in enumerate(names) for event in call(first + n, f"{prefix}{n}", name, "{}")]


def chat_calls() -> list[dict[str, Any]]:
    return [
        chat_wire.call_delta(index=n, id=f"functions.{name}:{n}", type="function", name=name, arguments="{}")
        for n, name in enumerate(("plot", "fail", "never"))
    ]


# A reply of each that thinks, speaks, and picks three functions.
THOUGHTFUL: dict[str, list[bytes]] = {
    "openai": [
        *map(
            chat_wire.event,
            [
                chat_wire.chunk({"role": "assistant", "reasoning_content": THOUGHT}),
                chat_wire.chunk({"content": "I look."}),
                *chat_calls(),
                chat_wire.FINISH,
            ],
        ),
        chat_wire.DONE,
    ],
    "openai-responses": responses_wire.whole(
        responses_wire.thinking(0, THOUGHT),
        responses_wire.text(1, "I look."),
        calls(responses_wire.call, 2, "call_" + "x" * 55),
    ),
    "anthropic": anthropic_wire.whole(
        anthropic_wire.thinking(0, THOUGHT),
        anthropic_wire.text(1, "I look."),
        calls(anthropic_wire.call, 2, "toolu_"),
        stop_reason="tool_use",
    ),
    "gemini": gemini_wire.whole(
        gemini_wire.thought(THOUGHT),
        gemini_wire.text("I look."),
        gemini_wire.call("plot", signature="c2ln", args={}),
        gemini_wire.call("fail", args={}),
        gemini_wire.call("never", args={}),
    ),
    "bedrock": bedrock_wire.whole(
        bedrock_wire.reasoning(0, THOUGHT),
        bedrock_wire.text(1, "I look."),
        calls(bedrock_wire.call, 2, "tooluse_"),
        stop_reason="tool_use",
    ),
}


def eventful(name: str, server: WireServer) -> list[Message]:
    """A conversation in which a call gives an image, another fails, a third is skipped, and a reply breaks off."""
    adapter = ADAPTERS[name]
    runtime = adapter.runtime(server.url, system="You plot.")

    def plot() -> ImageContent:
        """Plot."""
        return ImageContent(PICTURE, "image/png")

    def fail() -> None:
        """Fail."""
        runtime.steer("Leave the rest.")
        raise OSError("no disk")

    def never() -> None:
        """Never run."""
        raise AssertionError

    broken = [*adapter.beginning("Half a sen"), adapter.error_event("Out of order")]
    server.script = [adapter.streamed(THOUGHTFUL[name]), adapter.streamed(broken)]
    with pytest.raises(RunError, match="Out of order"):
        runtime.exec("Look at the sales.", tools=[plot, fail, never])
    return the_run(runtime).messages


def plot() -> str:
    """Plot."""
    return "plotted"


@pytest.mark.parametrize(("first", "then"), [*permutations(ADAPTERS, 2)])
def test_what_one_began_another_goes_on_with_and_the_first_again(first: str, then: str, server: WireServer) -> None:
    history = eventful(first, server)
    assert any(
        isinstance(block, ThinkingContent) for m in history if isinstance(m, AssistantMessage) for block in m.content
    )
    for name in (then, first):
        adapter, asked_before = ADAPTERS[name], len(server.asked)
        server.script = [adapter.answer(Call("c_new", "plot", ["{}"])), adapter.answer("Done.")]
        runtime = adapter.runtime(server.url, system="You plot.")
        assert runtime.exec("Go on.", tools=[plot], history=history) == "Done."
        history = the_run(runtime).messages
        for asked in server.asked[asked_before:]:
            CHECKS[name](asked.body)
            sent = json.dumps(asked.body)
            for said in ("I look.", "no disk", "Skipped due to queued user message", "Leave the rest.", "Half a sen"):
                assert said in sent
            assert b64encode(PICTURE).decode() in sent, "the image is not shown"
            assert (THOUGHT in sent) <= (name == first), "somebody else's thinking"


@pytest.mark.parametrize("name", ADAPTERS)
def test_whatever_a_history_holds_what_is_sent_of_it_is_valid(name: str) -> None:
    request_body = import_module(f"op_jupyter.providers.{PROVIDERS[name].module}").request_body
    model = ADAPTERS[name].model().name

    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(histories())
    def check(history: list[Message]) -> None:
        body = request_body(Request(model, None, replayable(history), []))
        CHECKS[name](body)
        json.dumps(body)

    check()
