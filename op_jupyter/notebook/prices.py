"""What replies have cost, where the price of their model is known: the prices are those that genai-prices ships.

It works on the JSON of a run, for its views; nothing here asks anybody for newer prices.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

from op_jupyter.messages import Usage

_SELLERS = {
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "bedrock": "aws",
}
"""Who sells a model, by the prefix that it is asked for with."""
_HOUR = 3600


def priced(run: dict[str, Any]) -> dict[str, Any]:
    """`run` itself, each of whose replies has its cost, those of nested runs too."""
    for step in run["steps"]:
        price(run["model"], step)
    for children in run["children"].values():
        for child in children:
            priced(child)
    return run


def price(model: str, step: dict[str, Any]) -> dict[str, Any]:
    """`step` itself, with its cost when it is a reply that is complete."""
    if step["kind"] == "assistant" and step["ended"] is not None:
        step["cost"] = cost(model, Usage(**step["message"]["usage"]), step["started"] // _HOUR * _HOUR)
    return step


# A view that comes late is sent all of them again.
@functools.lru_cache(maxsize=10_000)
def cost(model: str, usage: Usage, time: float) -> float | None:
    """The US dollars that a reply cost; `None` where nobody knows.

    Args:
        model: with its prefix, as in `openai:gpt-5`.
        usage: of that reply.
        time: when it was asked for, in seconds since the epoch: prices change, also with the time of day.
    """
    prefix, _, name = model.partition(":")
    if prefix not in _SELLERS or usage == Usage():
        return None
    import genai_prices

    # There, what was read from a cache or written to it is a part of the input.
    tokens = genai_prices.Usage(
        input_tokens=usage.input + usage.cache_read + usage.cache_write,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
    )
    try:
        price = genai_prices.calc_price(
            tokens,
            model_ref=name,
            provider_id=_SELLERS[prefix],
            genai_request_timestamp=datetime.fromtimestamp(time, UTC),
        )
    except LookupError:
        return None
    return float(price.total_price)
