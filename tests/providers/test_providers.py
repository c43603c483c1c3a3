"""Which model a name stands for, and which one is asked where none is named."""

from __future__ import annotations

import pytest

from op_jupyter import RunError
from op_jupyter.providers import PROVIDERS, default_model, resolve

WITH_A_DEFAULT = [prefix for prefix, provider in PROVIDERS.items() if provider.default]


@pytest.mark.parametrize("prefix", WITH_A_DEFAULT)
def test_without_a_name_there_is_a_default_model(prefix: str) -> None:
    assert str(resolve(f"{prefix}:")) == f"{prefix}:{PROVIDERS[prefix].default}"
    assert str(resolve(f"{prefix}:x:y/z")) == f"{prefix}:x:y/z"


def test_a_provider_that_nobody_knows_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(RunError, match=r"There is no provider 'gpt-5': .* with one of openai:, ") as raised:
        resolve("gpt-5")
    assert raised.value.kind == "setup"


def no_spec(name: str) -> None:
    if "." in name:
        raise ModuleNotFoundError


@pytest.mark.parametrize("prefix", [prefix for prefix, provider in PROVIDERS.items() if provider.package])
def test_a_package_that_is_not_there_is_an_error_that_names_the_extra(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("op_jupyter.providers.find_spec", no_spec)
    with pytest.raises(RunError, match=rf"pip install 'op_jupyter\[{PROVIDERS[prefix].extra}\]'"):
        resolve(f"{prefix}:")


@pytest.mark.parametrize(
    ("key", "prefix"), [(key, prefix) for prefix, provider in PROVIDERS.items() for key in provider.keys]
)
def test_the_provider_that_there_is_a_key_for_is_asked(key: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(key, "sk-test")
    assert default_model() == f"{prefix}:"


def test_the_model_of_the_environment_goes_before_any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OP_JUPYTER_MODEL", "anthropic:claude-x")
    assert default_model() == "anthropic:claude-x"
