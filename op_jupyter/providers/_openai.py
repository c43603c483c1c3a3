"""The way to a server of OpenAI's: the client of its SDK, the words of its errors, and how it counts tokens.

Both of its wire formats are reached by it; nothing else here knows what stands in a body or in a reply.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from op_jupyter.events import StreamEvent
from op_jupyter.messages import Usage
from op_jupyter.providers import Connection, _sdk
from op_jupyter.providers._http import environment_of, given_client, key_of, making_a_client
from op_jupyter.providers._shared import ProviderError, listed
from op_jupyter.providers._wire import as_dict, as_int, as_str

if TYPE_CHECKING:
    from openai import OpenAI


def error_words(error: dict[str, Any]) -> tuple[str, str]:
    """The code and the message of an error object. A number as code repeats the status; the type says more."""
    words = [word for key in ("code", "type") if (word := as_str(error.get(key))) and not word.isdigit()]
    behind = as_str(as_dict(error.get("metadata")).get("raw"))  # what a router was told by the server behind it
    return next(iter(words), ""), ": ".join(filter(None, [as_str(error.get("message")), behind]))


SDK = _sdk.Sdk("openai", "set OPENAI_API_KEY, or pass api_key=", "Most end in /v1", error_words)


def reply(
    connection: Connection,
    path: str,
    body: dict[str, Any],
    read: Callable[[Iterable[str]], Iterator[StreamEvent]],
) -> Iterator[StreamEvent]:
    """What `read` makes of the data of the events that come back for `body`, posted to `path`.

    Raises:
        ProviderError: when there is no such reply.
    """
    return _sdk.reply(SDK, _client(connection), path, body, connection, read)


def models(connection: Connection) -> list[str]:
    """The models that the server offers.

    Raises:
        RunError: when it does not say.
    """
    return listed(connection, lambda: _sdk.offered(SDK, _client(connection), connection))


def _client(connection: Connection) -> OpenAI:
    """The SDK's client that reaches it, shared by all with the same key and address.

    Raises:
        ProviderError: when it is of another kind, or there is no key.
    """
    import openai

    if client := given_client(connection, openai.OpenAI, "an openai.OpenAI or openai.AzureOpenAI object"):
        return client
    base_url = connection.base_url or os.environ.get("OPENAI_BASE_URL")
    # A server of one's own needs no key, but the SDK does.
    api_key = key_of(connection, "OPENAI_API_KEY") or ("none" if base_url else None)
    if api_key is None:
        raise ProviderError(f"There is no key for openai: {SDK.key_hint}", "auth")
    return _shared_client(api_key, base_url, environment_of("OPENAI_"))


@functools.lru_cache(maxsize=16)
def _shared_client(api_key: str, base_url: str | None, environment: object) -> OpenAI:
    import openai

    with making_a_client():
        return openai.OpenAI(api_key=api_key, base_url=base_url)


def usage_of(usage: dict[str, Any], read: str, written: str) -> Usage:
    """The usage that the server says; `read` and `written` are its words for the tokens of each kind."""
    of_read, of_written = as_dict(usage.get(f"{read}_tokens_details")), as_dict(usage.get(f"{written}_tokens_details"))
    cache_read, cache_write = as_int(of_read.get("cached_tokens")), as_int(of_read.get("cache_write_tokens"))
    in_all, output = as_int(usage.get(f"{read}_tokens")), as_int(usage.get(f"{written}_tokens"))
    return Usage(
        input=max(0, in_all - cache_read - cache_write),
        # Some leave reasoning out of what was written, but not out of the total.
        output=max(output, as_int(usage.get("total_tokens")) - in_all),
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=as_int(of_written.get("reasoning_tokens")),
    )
