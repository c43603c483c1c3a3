"""`ollama:`, the models of an Ollama on this machine, or where `OLLAMA_HOST` or `base_url` says.

Where it is, and what it has; it speaks the chat completions of OpenAI, which are `openai_chat`'s business.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from op_jupyter.errors import RunError
from op_jupyter.events import StreamEvent
from op_jupyter.providers import Connection, Model, Request, openai_chat

DEFAULT_PORT = 11434


def model(name: str) -> Model:
    """The model that the Ollama calls `name`, or without a name the first that it has.

    Raises:
        RunError: when no name is given, and no Ollama answers or it has no model.
    """
    return Model("ollama", name or _first(), stream)


def models(connection: Connection) -> list[str]:
    """The models that the Ollama has.

    Raises:
        RunError: when none answers.
    """
    return openai_chat.models(_reached(connection))


def stream(request: Request) -> Iterator[StreamEvent]:
    """Ask the model, and stream its reply."""
    return openai_chat.stream(replace(request, connection=_reached(request.connection)))


def _first() -> str:
    address = urlsplit(_base_url())
    try:
        # Looked for before anything that takes long to import.
        socket.create_connection((address.hostname or "", address.port or 80), timeout=1).close()
    except OSError as error:
        raise RunError(f"No Ollama answers at {address.netloc} ({error}): start it", kind="connection") from None
    if offered := models(Connection(timeout=5)):
        return offered[0]
    raise RunError("The Ollama has no model yet: run `ollama pull`, such as for qwen3:4b", kind="setup")


def _reached(connection: Connection) -> Connection:
    if connection.client is not None:
        return connection
    # It needs no key, but the SDK does, and OpenAI's is nobody else's business.
    return replace(connection, base_url=connection.base_url or _base_url(), api_key=connection.api_key or "ollama")


def _base_url() -> str:
    """The address in `OLLAMA_HOST`, which may be a name alone, a port alone, or the one that it listens on.

    Raises:
        RunError: when it is no address.
    """
    host = os.environ.get("OLLAMA_HOST", "").strip("'\" ").rstrip("/")
    try:
        url = urlsplit(host if "://" in host else f"http://{host}")
        usual = {"http": 80, "https": 443}.get(url.scheme, DEFAULT_PORT) if "://" in host else DEFAULT_PORT
        port, name = url.port or usual, url.hostname or "127.0.0.1"
    except ValueError as error:
        raise RunError(f"OLLAMA_HOST is no address: {host!r} ({error})", kind="setup") from None
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    name = f"[{name}]" if ":" in name else name
    return f"{url.scheme}://{name}:{port}{url.path}/v1"
