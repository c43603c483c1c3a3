"""Networks as they are: names that nobody knows, proxies, certificates; the same for every provider."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from op_jupyter import RunError
from tests.providers.adapters import ADAPTERS
from tests.providers.wire_server import WireServer

TRUSTED = ("SSL_CERT_FILE", "AWS_CA_BUNDLE")


@pytest.fixture(autouse=True)
def a_plain_network(monkeypatch: pytest.MonkeyPatch, no_account: None) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", *TRUSTED):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def asked(name: str, url: str) -> str:
    return ADAPTERS[name].runtime(url, max_retries=0).exec("1 + 2?", tools=[])


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


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[WireServer, Path]]:
    """A server that speaks TLS, and the file of its certificate, which nobody trusts."""
    if not (openssl := shutil.which("openssl")):
        pytest.skip("needs openssl to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    wanted = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=wire"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *wanted.split(), *files], check=True, capture_output=True)
    server = WireServer()
    server.speak_tls(key, certificate)
    with server.running():
        yield server, certificate


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_certificate_of_ones_own_is_refused_until_it_is_named(
    name: str, tls: tuple[WireServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, certificate = tls
    error = failure(name, server.url)
    variable = "AWS_CA_BUNDLE" if name == "bedrock" else "SSL_CERT_FILE"
    assert error.kind == "connection" and f"certificate in {variable}" in str(error)
    monkeypatch.setenv(variable, str(certificate))
    server.script = [ADAPTERS[name].answer("It is 3.")]
    assert asked(name, server.url) == "It is 3."


@pytest.mark.parametrize("name", [name for name in ADAPTERS if name != "bedrock"])
def test_certificates_that_are_not_there_are_a_matter_of_set_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    error = failure(name, "https://127.0.0.1:1")
    assert error.kind == "setup" and "SSL_CERT_FILE" in str(error)
