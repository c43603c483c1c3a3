"""Where an Ollama is found, and that it is asked as any server that speaks the chat completions of OpenAI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from op_jupyter import RunError, Runtime
from op_jupyter.providers import Connection, default_model, list_models, resolve
from tests.providers.chat_wire import OpenAIChat
from tests.providers.wire_server import Answer, WireServer

CHAT = OpenAIChat()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    with WireServer().running() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        yield server


def has(*names: str) -> Answer:
    return Answer(pieces=CHAT.model_lists(list(names)), headers={"content-type": "application/json"})


def test_the_model_that_is_named_is_asked_where_the_environment_says_without_the_key_of_openai(
    server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    server.script = [CHAT.answer("It is 3.")]
    assert Runtime("ollama:qwen3:4b").exec("1 + 2?", tools=[]) == "It is 3."
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions" and asked.body["model"] == "qwen3:4b"
    assert "sk-of-openai" not in str(asked.headers)


def test_without_a_name_the_first_of_its_models_is_asked(server: WireServer) -> None:
    server.script = [has("qwen3:4b", "gemma3")]
    assert str(resolve("ollama:")) == "ollama:gemma3"
    assert server.asked[0].path == "/v1/models"


def test_an_ollama_that_answers_is_asked_where_there_is_no_key(server: WireServer) -> None:
    server.script = [has("qwen3:4b")]
    assert default_model() == "ollama:qwen3:4b"


def test_an_ollama_without_models_is_passed_over_and_says_what_to_do_when_it_is_named(server: WireServer) -> None:
    server.script = [has(), has()]
    assert not default_model().startswith("ollama:")
    with pytest.raises(RunError, match="ollama pull"):
        resolve("ollama:")


def test_what_it_offers_is_listed(server: WireServer) -> None:
    server.script = [has("qwen3:4b")]
    assert list_models("ollama", Connection()) == ["ollama:qwen3:4b"]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("0.0.0.0:1", "127.0.0.1:1"),
        ("http://127.0.0.1:1/", "127.0.0.1:1"),
        ("'127.0.0.1:1'", "127.0.0.1:1"),
        ("http://nowhere.invalid", "nowhere.invalid:80"),
        ("nowhere.invalid", "nowhere.invalid:11434"),
        (":1", "127.0.0.1:1"),
        ("[::]:1", "[::1]:1"),
    ],
)
def test_one_that_does_not_answer_is_an_error_that_says_where(
    host: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    with pytest.raises(RunError) as raised:
        resolve("ollama:")
    assert raised.value.kind == "connection" and f"No Ollama answers at {address} " in str(raised.value)


@pytest.mark.parametrize("host", ["localhost:abc", "0.0.0.0:99999", "[::1"])
def test_a_host_that_is_none_is_said_and_passed_over_where_no_model_is_named(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    with pytest.raises(RunError, match="OLLAMA_HOST is no address"):
        resolve("ollama:")
    assert not default_model().startswith("ollama:")
