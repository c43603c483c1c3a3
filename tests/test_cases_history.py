"""What a conversation held that broke other implementations: whatever it is, what is sent of it is valid.

The requests are those of OpenAI chat; what other wire formats want comes with their providers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from op_jupyter import Run, Runtime
from op_jupyter.events import AgentEvent
from op_jupyter.history import replayable
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.providers import Request, openai_chat
from op_jupyter.providers._wire import to_json
from op_jupyter.testing import call, scripted
from tests.conversation import add, playing
from tests.providers.adapter import KEY, Call
from tests.providers.chat_wire import OpenAIChat
from tests.providers.validity import check_chat
from tests.providers.wire_server import WireServer

answer = OpenAIChat().answer


def openai(server: WireServer, **settings: Any) -> Runtime:
    return Runtime(openai_chat.model("gpt-test"), api_key=KEY, base_url=f"{server.url}/v1", **settings)


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer().running() as server:
        yield server


def test_a_run_that_crashed_at_any_moment_can_be_gone_on_from(server: WireServer) -> None:
    saved: list[str] = []
    runtime = Runtime(
        scripted([["Let me see.", call("add", a=1, b=1), call("add", a="x")], [call("add", a=2, b=2)], "8"])
    )

    def save(event: AgentEvent) -> None:
        saved.append(runtime.under_way.run.to_json() if runtime.under_way else "")

    runtime.exec("go", tools=[add], on_event=save)
    server.script = [answer("ok") for _ in saved]
    for text in saved:
        history = Run.from_json(text).messages
        assert openai(server).exec("Go on.", tools=[add], history=history) == "ok"
        check_chat(server.asked[-1].body)
        messages = server.asked[-1].body["messages"]
        assert messages[-1] == {"role": "user", "content": "Go on."}


TEXTS = st.sampled_from(["", " \n", "a", "\ud83d", "😀"])
INPUT = st.builds(TextContent, TEXTS) | st.just(ImageContent(b"png", "image/png"))
IDS = st.sampled_from(["1", "2", "", "x" * 450, "x" * 449 + "y", "functions.add:0", "größe", "a b"])
CALLS = st.builds(ToolCall, IDS, st.sampled_from(["add", "a.b", ""]), st.just({}), st.sampled_from([None, "[1"]))
BLOCK = st.builds(TextContent, TEXTS) | st.builds(ThinkingContent, TEXTS) | CALLS
ENDS: list[StopReason] = ["stop", "tool_use", "error", "aborted", "length"]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Questions, replies, and results, of their calls and of others."""
    history: list[Message] = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            history.append(UserMessage(draw(st.lists(INPUT, max_size=2))))
        blocks: list[Block] = draw(st.lists(BLOCK, max_size=4))
        history.append(AssistantMessage(blocks, draw(st.sampled_from(ENDS))))
        ids = [block.id for block in blocks if isinstance(block, ToolCall)]
        answered = draw(st.lists(st.sampled_from([*ids, "elsewhere"]), max_size=4))
        history += [ToolResultMessage(id, "add", draw(st.lists(INPUT, max_size=2))) for id in answered]
    return history


@given(histories())
def test_what_may_be_replayed_stays_as_it_is_when_it_is_asked_for_again(history: list[Message]) -> None:
    replayed = replayable(history)
    assert replayable(replayed) == replayed
    to_json(openai_chat.request_body(Request("gpt-test", None, replayed, [])))


@pytest.mark.parametrize("length", [41, 64, 450])
def test_call_ids_that_another_provider_gave_are_shortened_alike_on_both_sides(length: int, server: WireServer) -> None:
    ids = ["x" * (length - 1) + end for end in "abc"]
    history: list[Message] = [
        UserMessage("go"),
        AssistantMessage([ToolCall(id, "add", {"a": 1, "b": 1}) for id in ids], "tool_use", provider="elsewhere"),
        *(ToolResultMessage(id, "add", [TextContent(id[-1])]) for id in ids),
    ]
    server.script = [answer(Call("c1", "add", ['{"a": 1, "b": 1}'])), answer("ok")]
    openai(server).exec("Go on.", tools=[add], history=history)
    for asked in server.asked:
        check_chat(asked.body)
        messages = asked.body["messages"]
        sent = [call["id"] for call in messages[1]["tool_calls"]]
        assert len(set(sent)) == 3
        assert [(one["tool_call_id"], one["content"]) for one in messages[2:5]] == list(zip(sent, "abc", strict=True))


def test_ids_that_the_server_itself_gave_go_back_as_they_came(server: WireServer) -> None:
    server.script = [answer(Call("functions.add:0", "add", ['{"a": 1, "b": 1}'])), answer("ok")]
    openai(server).exec("go", tools=[add])
    assert server.asked[1].body["messages"][1]["tool_calls"][0]["id"] == "functions.add:0"


def test_the_system_prompt_is_in_every_request(server: WireServer) -> None:
    later = iter([["more"], []])

    def ask(own: bool) -> str:
        runtime.steer("quick")
        return runtime.exec("inner", tools=[], system="You are inner." if own else None)

    server.script = [
        answer(Call("c1", "ask", ['{"own": false}'])),
        answer("inner"),
        answer(Call("c2", "ask", ['{"own": true}'])),
        answer("inner"),
        answer("outer"),
        answer("outer"),
    ]
    runtime = openai(server, system="You are outer.")
    assert runtime.exec("go", tools=[ask], get_follow_up_messages=lambda: next(later)) == "outer"
    prompts = [asked.body["messages"][0] for asked in server.asked]
    assert [prompt["role"] for prompt in prompts] == ["system"] * 6
    assert [prompt["content"] for prompt in prompts].count("You are inner.") == 1


def test_a_name_that_the_model_made_up_is_replayed_alike_in_the_call_and_in_its_result() -> None:
    made_up = ["functions.add x", "über", "", "x" * 100]
    model, requests = playing([ToolCall("", name) for name in made_up], "ok")
    Runtime(model).exec("go", tools=[add])
    _, picks, *answers = requests[1].messages
    assert isinstance(picks, AssistantMessage)
    names = [call.name for call in picks.tool_calls]
    assert names == ["functions_add_x", "_ber", "_", "x" * 64]
    assert [answer.tool_name for answer in answers if isinstance(answer, ToolResultMessage)] == names
