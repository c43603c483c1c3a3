"""No key reaches anything that is written."""

from __future__ import annotations

import timeit

import pytest

from op_jupyter.redact import redact


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
