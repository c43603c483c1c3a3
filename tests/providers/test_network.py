"""Networks as they are: names that nobody knows, proxies, certificates; the same for every provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from op_jupyter import RunError, Runtime
from op_jupyter.providers import list_models
from tests.providers.adapter import KEY, Reader
from tests.providers.adapters import ADAPTERS
from tests.providers.wire_server import Answer, WireServer

TRUSTED = ("SSL_CERT_FILE", "AWS_CA_BUNDLE")


@pytest.fixture(autouse=True)
def a_plain_network(monkeypatch: pytest.MonkeyPatch, no_account: None) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", *TRUSTED):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def asked(name: str, url: str) -> str:
    return ADAPTERS[name].runtime(url, max_retries=0).exec("1 + 2?", tools=[])


def trusting(name: str) -> str:
    """The variable that names the certificates which are trusted."""
    return "AWS_CA_BUNDLE" if name == "bedrock" else "SSL_CERT_FILE"


def failure(name: str, url: str) -> RunError:
    with pytest.raises(RunError) as raised:
        asked(name, url)
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_name_that_nobody_knows_asks_for_the_address(name: str) -> None:
    error = failure(name, "http://nowhere.invalid")
    assert error.kind == "connection" and "nowhere.invalid" in str(error) and "address right" in str(error)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_proxy_that_does_not_answer_is_named_without_its_password(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://ada:lovelace@127.0.0.1:9")
    error = failure(name, "https://api.example.com")
    assert error.kind == "connection" and "is the proxy http://127.0.0.1:9 right" in str(error)
    assert "lovelace" not in str(error)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_proxy_that_is_set_after_the_first_question_counts_for_the_next(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WireServer().running() as server:
        server.script = [ADAPTERS[name].answer("It is 3.")]
        assert "nobody.invalid" in str(failure(name, "http://nobody.invalid"))
        monkeypatch.setenv("HTTP_PROXY", server.url)
        assert asked(name, "http://nobody.invalid") == "It is 3."


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_certificate_of_ones_own_is_refused_until_it_is_named(
    name: str, tls: tuple[WireServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, certificate = tls
    error, variable = failure(name, server.url), trusting(name)
    assert error.kind == "connection" and f"certificate in {variable}" in str(error)
    monkeypatch.setenv(variable, str(certificate))
    server.script = [ADAPTERS[name].answer("It is 3.")]
    assert asked(name, server.url) == "It is 3."


@pytest.mark.parametrize("name", ADAPTERS)
def test_over_tls_too_a_request_can_be_left_before_and_after_the_headers(
    name: str, tls: tuple[WireServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, certificate = tls
    adapter = ADAPTERS[name]
    monkeypatch.setenv(trusting(name), str(certificate))
    for answer in (Answer(then="silent"), adapter.streamed(adapter.beginning("Wait"), then="silent")):
        server.script = [answer, adapter.answer("It is 3.")]
        reader = Reader(adapter.model(), adapter.question(adapter.connection(server.url)))
        server.wait_until_asked()
        assert not answer.pieces or reader.something_came.wait(5)
        reader.abandon()
        assert reader.is_gone_within(1)
        assert asked(name, server.url) == "It is 3."
        server.wait_until_asked()


@pytest.mark.parametrize("name", [name for name in ADAPTERS if name != "bedrock"])
def test_certificates_that_are_not_there_are_a_matter_of_set_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    error = failure(name, "https://127.0.0.1:1")
    assert error.kind == "setup" and "SSL_CERT_FILE" in str(error)


# -------------------------------------------------------------------- what is answered instead, and what is in a key


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_key_that_was_read_from_a_file_works_with_the_line_break_at_its_end(name: str) -> None:
    adapter = ADAPTERS[name]
    with WireServer().running() as server:
        server.script = [adapter.answer("It is 3.")]
        base_url = adapter.connection(server.url).base_url
        runtime = Runtime(adapter.model(), api_key=f"{KEY}\n", base_url=base_url, max_retries=0)
        assert runtime.exec("1 + 2?", tools=[]) == "It is 3."
        assert any(value.endswith(KEY) for value in server.asked[0].headers.values())


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_key_with_a_character_that_no_key_has_is_said_at_once(name: str) -> None:
    adapter = ADAPTERS[name]
    with pytest.raises(RunError, match="copy it once more") as raised:
        Runtime(adapter.model(), api_key="“sk-0123456789”", base_url="http://127.0.0.1:1").exec("Hi", tools=[])
    assert raised.value.kind == "auth"


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_page_in_place_of_the_list_of_models_asks_for_the_address(name: str) -> None:
    with WireServer().running() as server:
        page = Answer(pieces=[b"<html>Hello</html>"], headers={"content-type": "text/html"})
        server.script = [page, page]
        with pytest.raises(RunError, match=r"did not answer with a list of models .*: is base_url right\?"):
            list_models(name, ADAPTERS[name].connection(server.url))


@pytest.mark.parametrize("name", [name for name in ADAPTERS if name != "bedrock"])
def test_an_error_that_comes_with_the_status_of_a_reply_says_its_reason(name: str) -> None:
    with WireServer().running() as server:
        body = b'{"error": {"message": "no credits", "code": 402}}'
        server.script = [Answer(pieces=[body], headers={"content-type": "application/json"})]
        error = failure(name, server.url)
    assert error.kind == "quota" and "no credits" in str(error)
