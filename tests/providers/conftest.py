"""A server on loopback, and a machine that nobody has an account on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.wire_server import WireServer


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer().running() as server:
        yield server


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let nothing be seen of an account that this machine may have."""
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "ANTHROPIC_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    if boto3 := sys.modules.get("boto3"):
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


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
