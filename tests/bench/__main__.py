"""`make bench`: what a person notices, measured as a ratio to what it cannot cost less than."""

from __future__ import annotations

from tests.bench.rounds import cost_of_rounds
from tests.providers.adapter import Adapter
from tests.providers.anthropic_wire import Anthropic
from tests.providers.bedrock_wire import Bedrock
from tests.providers.gemini_wire import Gemini
from tests.providers.responses_wire import OpenAIResponses
from tests.providers.test_openai_chat import OpenAIChat

ADAPTERS: dict[str, Adapter] = {
    "openai": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "bedrock": Bedrock(),
}


def main() -> None:
    """Measure, and print the table."""
    for name, adapter in ADAPTERS.items():
        for earlier in (0, 160):
            cost = cost_of_rounds(adapter, earlier)
            print(f"{name:18} after {earlier:3} messages: {cost.ours:6.2f} ms a round, {cost.ratio:5.2f} × the floor")


if __name__ == "__main__":
    main()
