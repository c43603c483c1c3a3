"""What all tests share: an environment without keys, and a registry of functions of their own."""

from __future__ import annotations

import pytest
from hypothesis import settings

from op_jupyter.tools import registry

# How long an example takes says how busy the machine is.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(autouse=True)
def no_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OP_JUPYTER_MODEL", "OP_JUPYTER_EVENTS", "OP_JUPYTER_REPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", {})
