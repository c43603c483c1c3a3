"""What the tests of the tools share: a registry of their own."""

from __future__ import annotations

import pytest

from op_jupyter.tools import registry


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", {})
