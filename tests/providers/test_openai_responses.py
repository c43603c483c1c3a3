"""`openai-responses:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from op_jupyter import Run, RunError
from op_jupyter.messages import ServerContent, ThinkingContent
from op_jupyter.providers import Connection
from tests.conversation import add, the_run
from tests.providers.adapter import KEY, shown
from tests.providers.conformance import Conformance
from tests.providers.responses_wire import CREATED, OpenAIResponses, call, end, event, item, text, thinking, whole
from tests.providers.wire_server import Answer, WireServer


class TestOpenAIResponses(Conformance):
    adapter = OpenAIResponses()

    # ------------------------------------------------------------ the stream

    def test_a_server_that_fails_before_any_output_is_asked_again(self, server: WireServer) -> None:
        failed = end("failed", error={"code": "server_error", "message": "The server had an error."})
        thinks = thinking(0, "Hm")[:1]  # nothing of that has been shown
        server.script = [
            self.adapter.streamed([*map(event, [CREATED, *thinks, failed])]),
            self.adapter.streamed([event(CREATED), self.adapter.error_event("Overloaded")]),
            self.adapter.answer("It is 3."),
        ]
        reply = self.ask(server)
        assert reply.text == "It is 3."
        assert [retry.reason.rpartition(": ")[2] for retry in reply.retries] == [
            "The server had an error.",
            "Overloaded",
        ]

    @pytest.mark.parametrize("nested", [True, False])
    def test_a_quota_that_is_used_up_is_said_at_once(self, server: WireServer, nested: bool) -> None:
        error = {"code": "insufficient_quota", "message": "You exceeded your quota."}
        said = {"type": "error", "error": error} if nested else {"type": "error"} | error
        server.script = [self.adapter.streamed([event(CREATED), event(said)])]
        reply = self.ask(server)
        assert (reply.end.error_kind, reply.end.finish, reply.retries) == ("quota", "failed", [])

    # ------------------------------------------------------------ errors

    @pytest.mark.parametrize(
        "error",
        [
            {"message": "Too many tokens.", "code": "context_length_exceeded"},
            {"message": "the request exceeds the available", "type": "exceed_context_size_error", "code": 400},
        ],
    )
    def test_a_prompt_that_is_too_long_has_a_kind_of_its_own(self, server: WireServer, error: dict[str, Any]) -> None:
        server.script = [Answer(status=400, pieces=[json.dumps({"error": error}).encode()])]
        assert self.ask(server).end.error_kind == "context"

    # ------------------------------------------------------------ keys, addresses, clients

    def test_a_server_of_ones_own_needs_no_key(self, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        assert self.end_of(Connection(base_url=f"{server.url}/v1")).stop_reason == "stop"
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert self.end_of(Connection()).stop_reason == "stop"
        assert [asked.path for asked in server.asked] == ["/v1/responses"] * 2

    def test_a_client_of_the_sdk_is_used_as_it_is(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/mine", default_headers={"x-mine": "yes"}) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
        assert server.asked[0].path == "/mine/responses"
        assert server.asked[0].headers["x-mine"] == "yes"

    @pytest.mark.parametrize("deployment", [None, "mine"])
    def test_a_client_for_azure_finds_its_address(self, server: WireServer, deployment: str | None) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.failed(400, f"What is {KEY}?")]
        with openai.AzureOpenAI(
            api_key=KEY, azure_endpoint=server.url, api_version="2025-04-01-preview", azure_deployment=deployment
        ) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
            assert KEY not in (self.end_of(Connection(client=client)).error_message or KEY)
        assert server.asked[0].path == "/openai/responses?api-version=2025-04-01-preview"
        assert server.asked[0].body["model"] == "gpt-test"
        assert KEY in server.asked[0].headers.values()

    # ------------------------------------------------------------ a run

    def test_the_result_of_a_call_goes_back_behind_it_and_what_was_thought_before_it(self, server: WireServer) -> None:
        calls = call(1, "c1", "add", '{"a": 1, "b": 2}')
        server.script = [
            self.adapter.streamed(whole(thinking(0, "I need add."), calls)),
            self.adapter.answer("It is 3."),
        ]
        asked = self.runtime(server, system="Be brief.")
        assert asked.exec("1 + 2?", tools=[add]) == "It is 3."
        assert [body["instructions"] for body in bodies(server)] == ["Be brief."] * 2
        assert bodies(server)[1]["input"] == [
            {"role": "user", "content": [{"type": "input_text", "text": "1 + 2?"}]},
            {
                "type": "reasoning",
                "id": "rs_0",
                "summary": [{"type": "summary_text", "text": "I need add."}],
                "encrypted_content": "ZW5j",
            },
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a":1,"b":2}'},
            {"type": "function_call_output", "call_id": "c1", "output": "3"},
        ]

    def test_a_server_that_gives_each_call_the_same_id_is_told_them_apart(self, server: WireServer) -> None:
        server.script = [
            self.adapter.streamed(whole(call(0, "call_0", "add", '{"a": 1, "b": 2}'))),
            self.adapter.streamed(whole(call(0, "call_0", "add", '{"a": 3, "b": 4}'))),
            self.adapter.answer("3 and 7."),
        ]
        self.runtime(server).exec("?", tools=[add])
        ids = [item["call_id"] for item in bodies(server)[-1]["input"] if "call_id" in item]
        assert (ids[0], ids[2]) == (ids[1], ids[3])
        assert len(set(ids)) == 2

    def test_a_refusal_fails_the_run_with_its_reason(self, server: WireServer) -> None:
        part = {"type": "refusal", "refusal": "I can't help with that."}
        refused = item(0, {"type": "message", "id": "msg_0", "content": [part]}, content=[])
        server.script = [self.adapter.streamed(whole(refused))]
        with pytest.raises(RunError, match=r"I can't help with that") as raised:
            self.runtime(server).exec("Hi", tools=[])
        assert raised.value.kind == "filter"

    def test_a_run_that_was_recorded_can_be_read_again_and_goes_on(self, server: WireServer) -> None:
        search = item(1, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "tea"}})
        reply = whole(thinking(0), search, text(2, "Tea.", phase="final_answer"))
        server.script = [self.adapter.streamed(reply), self.adapter.answer("Yes."), self.adapter.answer("Yes.")]
        asked = self.runtime(server)
        assert asked.exec("Which sold best?", tools=[]) == "Tea."
        run = the_run(asked)
        kinds = [type(block) for block in shown(run)]
        assert kinds[:2] == [ThinkingContent, ServerContent]
        for messages in (run.messages, Run.from_json(run.to_json()).messages):
            asked.exec("Sure?", tools=[], history=messages)
        assert bodies(server)[1] == bodies(server)[2]
        assert [item.get("id") for item in bodies(server)[1]["input"]] == [None, "rs_0", "ws_1", "msg_2", None]


def bodies(server: WireServer) -> list[dict[str, Any]]:
    return [asked.body for asked in server.asked]
