"""What a provider is: the request it gets, the events it streams, and the table that finds one by its name.

No SDK is imported here, nor any provider until a model of it is asked for.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, Protocol

from typing_extensions import TypedDict

from op_jupyter.errors import RunError
from op_jupyter.events import StreamEvent
from op_jupyter.messages import Message


class NamedToolChoice(TypedDict):
    """A `tool_choice` that makes the model pick the function `name`."""

    type: Literal["function"]
    name: str


ToolChoice = Literal["auto", "required", "none"] | NamedToolChoice


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function as a model sees it; `parameters` is a JSON Schema of type `object`."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """How a provider is reached. Never written anywhere: it may hold a key.

    `client` is the SDK's own client object and takes the place of the key and the address. `timeout` is in seconds
    of silence.
    """

    client: Any = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout: float = 600
    max_retries: int = 2


class Abandonment:
    """What frees the thread that reads a reply, should nobody want the rest of it.

    A provider appends functions; when the request is left, another thread calls each of them, once. One that is
    appended after that is called at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions: list[Callable[[], None]] = []
        self._abandoned = False

    def append(self, function: Callable[[], None]) -> None:
        """Have `function` called when the request is left."""
        with self._lock:
            if not self._abandoned:
                self._functions.append(function)
                return
        function()

    def __call__(self) -> None:
        """Leave the request."""
        with self._lock:
            self._abandoned = True
            functions = self._functions[:]
            self._functions.clear()
        for function in functions:
            function()


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model. `messages` is valid for replay as it is (`history.replayable` has seen to that).

    A provider tells `on_abandon` how it can be made to stop in the middle of a reply.
    """

    model: str
    system: str | None
    messages: list[Message]
    tools: list[ToolSpec]
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool | None = None
    options: dict[str, Any] = field(default_factory=dict)
    connection: Connection = field(default_factory=Connection, repr=False, compare=False)
    on_abandon: Abandonment = field(default_factory=Abandonment, repr=False, compare=False)


class StreamFn(Protocol):
    """A provider: one function from a request to the events of the reply.

    It holds no state between calls. It raises nothing after its first event (a failure is a `StreamEnd` with
    `stop_reason="error"`), and says `StreamEnd` exactly once, last.
    """

    def __call__(self, request: Request, /) -> Iterator[StreamEvent]: ...


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be asked: the provider's function, and the name by which that provider knows the model.

    `context_tokens` is how much it can read. `within`, where there is one, is what a nested run's own model becomes
    under this one: a recording also records it, a replay answers in its place.
    """

    provider: str
    name: str
    stream: StreamFn
    context_tokens: int = 128_000
    within: Callable[[Model], Model] | None = None

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" if self.name else self.provider


@dataclass(frozen=True, slots=True)
class Provider:
    """Where the functions of a provider are, and what there has to be for them.

    `module` has `model(name) -> Model`, and `models(connection) -> list[str]` where the provider says what it offers.
    `extra` is what to install for `package` to be there. One of the variables `keys` holds a key. `default` is the
    model to ask where none is named.
    """

    module: str
    extra: str = ""
    package: str = ""
    keys: tuple[str, ...] = ()
    default: str = ""


# The default models are those of November 2026: small, quick, and good with functions.
PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openai_chat", "openai", "openai", ("OPENAI_API_KEY",), "gpt-5.4-mini"),
    "openai-responses": Provider("openai_responses", "openai", "openai", default="gpt-5.4-mini"),
    "anthropic": Provider("anthropic", "anthropic", "anthropic", ("ANTHROPIC_API_KEY",), "claude-haiku-5-5"),
    "gemini": Provider("gemini", "gemini", "google.genai", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-3.8-flash"),
    "bedrock": Provider("bedrock", "bedrock", "boto3", ("AWS_BEARER_TOKEN_BEDROCK",), "global.amazon.nova-2-lite-v1:0"),
    "ollama": Provider("ollama", "openai", "openai"),
    "local": Provider("local", "local", "xllamacpp"),
    "replay": Provider("replay"),
}
"""The provider that stands for a prefix; keys are looked for in this order."""


def resolve(spec: str) -> Model:
    """The model that `provider:name` names, or without a name the default one of the provider.

    Raises:
        RunError: of kind `setup`, when the prefix is unknown, the extra is not installed, or the provider says so.
    """
    prefix, _, name = spec.partition(":")
    module, provider = _module(prefix), PROVIDERS[prefix]
    model: Model = module.model(name or provider.default)
    return model


def list_models(prefix: str, connection: Connection) -> list[str]:
    """The models that a provider offers, as `provider:name`.

    Raises:
        RunError: when it does not say.
    """
    module = _module(prefix)
    if not hasattr(module, "models"):
        raise RunError(f"{prefix}: has no list of models", kind="setup")
    return [f"{prefix}:{name}" for name in module.models(connection)]


def _module(prefix: str) -> ModuleType:
    if prefix not in PROVIDERS:
        known = ", ".join(f"{known}:" for known in PROVIDERS)
        reason = f"There is no provider {prefix!r}: a model is named provider:model, with one of {known}"
        raise RunError(reason, kind="setup")
    provider = PROVIDERS[prefix]
    if provider.package and not _is_installed(provider.package):
        raise RunError(f"{prefix}: needs another package: pip install 'op_jupyter[{provider.extra}]'", kind="setup")
    return importlib.import_module(f"op_jupyter.providers.{provider.module}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package that it is a part of
        return False


def default_model() -> str:
    """The model to ask where none is named: `OP_JUPYTER_MODEL`, what a key is there for, an Ollama, the embedded one.

    Raises:
        RunError: of kind `setup`, when there is none of these.
    """
    if named := os.environ.get("OP_JUPYTER_MODEL"):
        return named
    for prefix, provider in PROVIDERS.items():
        if any(os.environ.get(key) for key in provider.keys):
            return f"{prefix}:"
    with suppress(RunError):
        return str(resolve("ollama:"))
    try:
        return str(resolve("local:"))
    except RunError as error:
        keys = ", ".join(key for provider in PROVIDERS.values() for key in provider.keys)
        raise RunError(
            f"There is no model to ask: set a key ({keys}), or name one in OP_JUPYTER_MODEL as provider:model, or use "
            f"the embedded one ({error})",
            kind="setup",
        ) from None
