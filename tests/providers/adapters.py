"""Every provider that is asked over HTTP, by its prefix: for the tests that hold for all of them."""

from __future__ import annotations

from tests.providers.adapter import Adapter
from tests.providers.anthropic_wire import Anthropic
from tests.providers.bedrock_wire import Bedrock
from tests.providers.chat_wire import OpenAIChat
from tests.providers.gemini_wire import Gemini
from tests.providers.responses_wire import OpenAIResponses

ADAPTERS: dict[str, Adapter] = {
    "openai": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "bedrock": Bedrock(),
}
