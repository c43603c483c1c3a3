"""No key reaches anything that is written."""

from __future__ import annotations

import timeit
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from op_jupyter import Run, Runtime
from op_jupyter.events import AgentEvent, BlockDelta, BlockEnd, BlockStart, StreamEnd, StreamEvent
from op_jupyter.messages import TextContent, ToolCall
from op_jupyter.providers import Model, Request
from op_jupyter.redact import beginning_of_key, longest_first, redact
from op_jupyter.testing import call, scripted
from tests.conversation import the_run


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "HF_TOKEN",
        "API_KEY",
        "SECRET_KEY",
        "token",
    ],
)
def test_a_key_of_the_environment_is_replaced_wherever_it_stands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "sk-abc/DEF+123==")

    assert redact("key=sk-abc/DEF+123==&x\nsk-abc/DEF+123==") == "key=[redacted]&x\n[redacted]"


def test_a_key_that_the_notebook_sets_later_is_replaced_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact("my-late-key") == "my-late-key"
    monkeypatch.setenv("OPENAI_API_KEY", "my-late-key")
    assert redact("my-late-key") == "[redacted]"


def test_a_key_given_in_code_is_replaced() -> None:
    assert redact("Incorrect API key: my-own-key.", "my-own-key") == "Incorrect API key: [redacted]."


def test_a_key_that_begins_like_another_leaves_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345")

    assert redact("sk-12345 sk-12345-and-more", "sk-12345-and-more") == "[redacted] [redacted]"


def test_the_newline_after_a_key_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567\n")

    assert redact("Bearer sk-1234567") == "Bearer [redacted]"


def test_ordinary_words_and_empty_values_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    monkeypatch.setenv("HF_TOKEN", "")

    assert redact("/usr/bin ollama /home/ada", "") == "/usr/bin ollama /home/ada"


def test_a_text_without_keys_costs_next_to_nothing() -> None:
    text = "word " * 1000

    assert min(timeit.repeat(lambda: redact(text), number=100, repeat=5)) / 100 < 0.001


@given(st.lists(st.text("ab", min_size=1, max_size=5)), st.sets(st.text("ab", min_size=2, max_size=6), min_size=1))
def test_what_is_told_of_a_growing_text_is_what_is_left_without_the_keys(pieces: list[str], known: set[str]) -> None:
    keys = longest_first(known)
    told: list[str] = []
    held = ""
    for piece in pieces:
        held += piece
        end = beginning_of_key(held, keys)
        told.append(held[:end])
        held = held[end:]
        assert any(key.startswith(held) for key in keys) or not held or any(key in held for key in keys)
    whole, at = "".join([*told, held]), 0
    assert whole == "".join(pieces)
    for text in told:
        at += len(text)
        assert not any(whole.find(key, max(0, at - len(key) + 1), at + len(key) - 1) >= 0 for key in keys)


@pytest.mark.parametrize("block", [TextContent(""), ToolCall("1", "add")])
def test_a_key_in_pieces_of_a_reply_is_never_whole_in_the_record(
    block: TextContent | ToolCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'sk-"abcdefghijklmnop'
    written = f"the key is {key}!" if isinstance(block, TextContent) else '{"key": "sk-\\"abcdefghijklmnop"}'
    monkeypatch.setenv("MY_API_KEY", key)

    def stream(request: Request) -> Iterator[StreamEvent]:
        yield BlockStart(0, block)
        for at in range(0, len(written), 3):
            yield BlockDelta(0, written[at : at + 3])
        yield BlockEnd(0, TextContent("done"))
        yield StreamEnd("stop")

    runtime = Runtime(model=Model("any", "any", stream))
    records: list[Run] = []
    deltas: list[str] = []

    def listen(event: AgentEvent) -> None:
        if runtime.under_way:
            records.append(Run.from_json(runtime.under_way.run.to_json()))
        if event.kind == "message_update" and isinstance(event.update, BlockDelta):
            deltas.append(event.update.text)

    runtime.exec("go", tools=[], on_event=listen)
    assert "abcdefgh" not in "".join(deltas) and "[redacted]" in "".join(deltas)
    assert not any("abcdefghijklmnop" in record.to_json() for record in records)


def test_the_key_of_a_runtime_that_a_function_uses_is_in_no_record() -> None:
    key = "nested-key-123456"

    def ask() -> str:
        inner = Runtime(model=scripted([f"the key is {key}"]), api_key=key)
        return f"it says: {inner.exec('which?', tools=[])}"

    runtime = Runtime(model=scripted([[call("ask")], f"So it is {key}."]), api_key="outer-key-123456")
    runtime.exec("go", tools=[ask])
    assert key not in the_run(runtime).to_json()
