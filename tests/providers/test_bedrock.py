"""`bedrock:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.providers.bedrock_wire import Bedrock
from tests.providers.conformance import Conformance

pytest.importorskip("boto3", reason="needs op_jupyter[bedrock]")


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")


class TestBedrock(Conformance):
    adapter = Bedrock()
