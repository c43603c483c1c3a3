"""What the tests of the source documents share: a registry of their own, and a look into the functions of the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest


@dataclass
class Spied:
    """The calls of a function: what it was given, what it returned, and what it raised."""

    arguments: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    returned: list[Any] = field(default_factory=list[Any])
    raised: list[BaseException] = field(default_factory=list[BaseException])


Spy = Callable[[ModuleType, str], Spied]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """Watches the function that a module calls by a name, which goes on doing what it does."""

    def watch(module: ModuleType, name: str) -> Spied:
        spied, watched = Spied(), getattr(module, name)

        def call(*arguments: Any) -> Any:
            spied.arguments.append(arguments)
            try:
                returned = watched(*arguments)
            except BaseException as error:
                spied.raised.append(error)
                raise
            spied.returned.append(returned)
            return returned

        monkeypatch.setattr(module, name, call)
        return spied

    return watch
