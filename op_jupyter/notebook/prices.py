"""What a reply has cost, where the price of its model is known.

The prices are those that genai-prices ships; nothing here asks anybody for newer ones.
"""

from __future__ import annotations

from datetime import UTC, datetime

from op_jupyter.messages import Usage

_SELLERS = {
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "bedrock": "aws",
}
"""Who sells a model, by the prefix that it is asked for with."""


def cost(model: str, usage: Usage, time: float) -> float | None:
    """The US dollars that a reply of `model` cost which used so many tokens; `None` where nobody knows.

    Args:
        model: with its prefix, as in `openai:gpt-5`.
        usage: of that reply.
        time: when it was asked for, in seconds since the epoch: prices change, also with the time of day.
    """
    prefix, _, name = model.partition(":")
    if prefix not in _SELLERS or not (usage.input or usage.output):
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
