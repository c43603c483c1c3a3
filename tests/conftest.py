"""What all tests share: an environment without keys, and a registry of functions of their own."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from op_jupyter.tools import registry

# How long an example takes says how busy the machine is.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


PREFIXES = ("ANTHROPIC_", "AWS_", "AZURE_", "GEMINI_", "GOOGLE_", "OLLAMA_", "OPENAI_", "OP_JUPYTER_")


@pytest.fixture(autouse=True)
def no_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", {})
