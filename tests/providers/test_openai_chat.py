"""`openai:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import openai
import pytest

from op_jupyter.messages import UserMessage
from op_jupyter.providers import Connection, Request
from op_jupyter.providers.openai_chat import model
from tests.providers.adapter import KEY, Reply
from tests.providers.chat_wire import OpenAIChat, chunk, event
from tests.providers.conformance import Conformance
from tests.providers.wire_server import Answer, WireServer


class TestOpenAIChat(Conformance):
    adapter = OpenAIChat()

    # ------------------------------------------------------------ the stream

    @pytest.mark.parametrize("finished", [True, False], ids=["with a finish reason", "without"])
    def test_what_was_finished_is_whole_though_the_connection_breaks(self, server: WireServer, finished: bool) -> None:
        pieces = [event(chunk({"content": "It is 3."})), *([event(chunk({}, "stop"))] if finished else [])]
        server.script = [self.adapter.streamed(pieces, then="cut")]
        assert self.ask(server).end.stop_reason == ("stop" if finished else "error")

    def test_an_error_event_before_any_output_is_tried_again(self, server: WireServer) -> None:
        broken = event({"error": {"message": "Overloaded", "code": 503}})
        server.script = [self.adapter.streamed([broken]), self.adapter.answer("It is 3.")]
        reply = self.ask(server, max_retries=1)
        assert reply.text == "It is 3."
        assert "Overloaded" in reply.retries[0].reason

    # ------------------------------------------------------------ errors

    def test_a_quota_that_is_used_up_is_said_at_once(self, server: WireServer) -> None:
        error = {
            "message": "You exceeded your current quota.",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        }
        server.script = [Answer(status=429, pieces=[json.dumps({"error": error}).encode()])]
        reply = self.ask(server)
        assert (reply.end.error_kind, reply.retries) == ("quota", [])

    @pytest.mark.parametrize(
        "error",
        [
            {"message": "Too many tokens.", "code": "context_length_exceeded"},
            {"message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError", "code": 400},
            {"message": "the request exceeds the available", "type": "exceed_context_size_error", "code": 400},
        ],
    )
    def test_a_prompt_that_is_too_long_has_a_kind_of_its_own(self, server: WireServer, error: dict[str, Any]) -> None:
        server.script = [Answer(status=400, pieces=[json.dumps({"error": error}).encode()])]
        assert self.ask(server).end.error_kind == "context"

    def test_what_a_router_was_told_is_passed_on(self, server: WireServer) -> None:
        error = {"code": 429, "message": "Provider returned error", "metadata": {"raw": "busy upstream"}}
        server.script = [Answer(status=429, pieces=[json.dumps({"error": error}).encode()])]
        assert "busy upstream" in (self.ask(server, max_retries=0).end.error_message or "")

    # ------------------------------------------------------------ keys, addresses, clients

    def test_a_server_of_ones_own_needs_no_key(self, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        assert self.end_of(Connection(base_url=f"{server.url}/v1")).stop_reason == "stop"
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert self.end_of(Connection()).stop_reason == "stop"
        assert [asked.path for asked in server.asked] == ["/v1/chat/completions"] * 2

    def test_a_client_of_the_sdk_is_used_as_it_is(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/mine", default_headers={"x-mine": "yes"}) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
        assert server.asked[0].path == "/mine/chat/completions"
        assert server.asked[0].headers["x-mine"] == "yes"

    def test_a_client_for_azure_finds_its_deployment(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        with openai.AzureOpenAI(api_key=KEY, azure_endpoint=server.url, api_version="2025-01-01") as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
        path = "/openai/deployments/gpt-test/chat/completions?api-version=2025-01-01"
        assert server.asked[0].path == path

    def test_the_key_of_a_client_is_in_no_error(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(400, f"What is {KEY}?")]
        with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/v1") as client:
            assert KEY not in (self.end_of(Connection(client=client)).error_message or KEY)

    def test_a_token_that_a_client_gets_from_elsewhere_is_in_no_error_either(self, server: WireServer) -> None:
        token = "eyJ0eXAi.0123456789.abcdef"
        broken = [*self.adapter.beginning("Well"), self.adapter.error_event(f"What is {token}?")]
        server.script = [self.adapter.failed(400, f"What is {token}?"), self.adapter.streamed(broken)]
        with openai.AzureOpenAI(
            azure_ad_token_provider=lambda: token, azure_endpoint=server.url, api_version="2025-01-01"
        ) as client:
            messages = [self.end_of(Connection(client=client)).error_message or "" for _ in range(2)]
        assert ["What is [redacted]?" in message for message in messages] == [True, True]

    def test_a_project_that_is_named_after_the_first_question_counts_for_the_next(
        self, server: WireServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        self.ask(server)
        monkeypatch.setenv("OPENAI_PROJECT_ID", "fjord")
        self.ask(server)
        assert [asked.headers.get("openai-project") for asked in server.asked] == [None, "fjord"]

    def test_what_has_no_place_in_json_is_said(self) -> None:
        request = Request("gpt-test", None, [UserMessage("Hi")], [], options={"seed": object()})
        end = Reply(list(model("gpt-test").stream(replace(request, connection=Connection(api_key=KEY))))).end
        assert "not JSON serializable" in (end.error_message or "")
