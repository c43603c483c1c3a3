"""`openai-responses:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from op_jupyter import Run, RunError, Runtime
from op_jupyter.events import StreamEnd
from op_jupyter.messages import AssistantMessage, ServerContent, ThinkingContent, UserMessage
from op_jupyter.providers import Connection, Request
from op_jupyter.providers.openai_responses import model
from tests.providers.adapter import ADD, KEY, Reply
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

    def test_a_reply_that_is_no_stream_is_said(self, server: WireServer) -> None:
        server.script = [Answer(pieces=[b'{"output": []}'], headers={"content-type": "application/json"})]
        assert "application/json" in (self.ask(server).end.error_message or "")

    def test_a_wrong_path_asks_for_the_base_url(self, server: WireServer) -> None:
        server.script = [Answer(status=404, pieces=[b"404 page not found"])]
        message = self.ask(server).end.error_message or ""
        assert message.endswith("answered 404: 404 page not found (is base_url right? Most end in /v1)")

    def test_a_refused_key_says_how_to_give_another(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(401, "Incorrect API key provided: sk-confo****cdef.")]
        message = self.ask(server).end.error_message or ""
        assert "OPENAI_API_KEY" in message
        assert "cdef" not in message

    # ------------------------------------------------------------ keys, addresses, clients

    def test_a_missing_key_is_said_without_asking_anyone(self) -> None:
        end = one_end(Connection())
        assert end.error_kind == "auth"
        assert "OPENAI_API_KEY" in (end.error_message or "")

    def test_a_server_of_ones_own_needs_no_key(self, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        assert one_end(Connection(base_url=f"{server.url}/v1")).stop_reason == "stop"
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert one_end(Connection()).stop_reason == "stop"
        assert [asked.path for asked in server.asked] == ["/v1/responses"] * 2

    def test_an_address_without_http_is_said_at_once(self) -> None:
        end = one_end(Connection(base_url="localhost:11434/v1"))
        assert (end.error_kind, "http://" in (end.error_message or "")) == ("setup", True)

    def test_a_password_in_the_address_is_in_no_error(self, server: WireServer) -> None:
        no_stream = Answer(pieces=[b"{}"], headers={"content-type": "application/json"})
        server.script = [self.adapter.failed(500, "No"), no_stream]
        address = server.url.replace("http://", "http://ada:lovelace-1815@")
        for _ in range(2):
            end = one_end(Connection(base_url=f"{address}/v1", max_retries=0))
            assert "lovelace" not in (end.error_message or "lovelace")

    def test_a_client_of_the_sdk_is_used_as_it_is(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/mine", default_headers={"x-mine": "yes"}) as client:
            assert one_end(Connection(client=client)).stop_reason == "stop"
        assert server.asked[0].path == "/mine/responses"
        assert server.asked[0].headers["x-mine"] == "yes"

    @pytest.mark.parametrize("deployment", [None, "mine"])
    def test_a_client_for_azure_finds_its_address(self, server: WireServer, deployment: str | None) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.failed(400, f"What is {KEY}?")]
        with openai.AzureOpenAI(
            api_key=KEY, azure_endpoint=server.url, api_version="2025-04-01-preview", azure_deployment=deployment
        ) as client:
            assert one_end(Connection(client=client)).stop_reason == "stop"
            assert KEY not in (one_end(Connection(client=client)).error_message or KEY)
        assert server.asked[0].path == "/openai/responses?api-version=2025-04-01-preview"
        assert server.asked[0].body["model"] == "gpt-test"
        assert KEY in server.asked[0].headers.values()

    def test_a_reply_that_is_not_read_to_its_end_gives_its_connection_back(self, server: WireServer) -> None:
        broken = [*self.adapter.beginning("Well"), self.adapter.error_event("Out of order")]
        server.script = [self.adapter.streamed(broken, then="silent"), self.adapter.answer("Hello")]
        only_one = httpx2.Client(limits=httpx2.Limits(max_connections=1))
        with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/v1", http_client=only_one) as client:
            connection = Connection(client=client, timeout=2)
            assert [one_end(connection).stop_reason for _ in range(2)] == ["error", "stop"]

    @pytest.mark.parametrize("client", [object(), openai.AsyncOpenAI(api_key=KEY)], ids=["any", "async"])
    def test_another_object_as_client_is_said(self, client: Any) -> None:
        end = one_end(Connection(client=client))
        assert end.error_kind == "setup"
        assert "openai.OpenAI" in (end.error_message or "")

    # ------------------------------------------------------------ a run

    def test_the_result_of_a_call_goes_back_behind_it_and_what_was_thought_before_it(self, server: WireServer) -> None:
        calls = call(1, "c1", "add", '{"a": 1, "b": 2}')
        server.script = [
            self.adapter.streamed(whole(thinking(0, "I need add."), calls)),
            self.adapter.answer("It is 3."),
        ]
        asked = runtime(server, system="Be brief.")
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
        runtime(server).exec("?", tools=[add])
        ids = [item["call_id"] for item in bodies(server)[-1]["input"] if "call_id" in item]
        assert (ids[0], ids[2]) == (ids[1], ids[3])
        assert len(set(ids)) == 2

    def test_a_refusal_fails_the_run_with_its_reason(self, server: WireServer) -> None:
        part = {"type": "refusal", "refusal": "I can't help with that."}
        refused = item(0, {"type": "message", "id": "msg_0", "content": [part]}, content=[])
        server.script = [self.adapter.streamed(whole(refused))]
        with pytest.raises(RunError, match=r"I can't help with that") as raised:
            runtime(server).exec("Hi", tools=[])
        assert raised.value.kind == "filter"

    def test_a_run_that_was_recorded_can_be_read_again_and_goes_on(self, server: WireServer) -> None:
        search = item(1, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "tea"}})
        reply = whole(thinking(0), search, text(2, "Tea.", phase="final_answer"))
        server.script = [self.adapter.streamed(reply), self.adapter.answer("Yes."), self.adapter.answer("Yes.")]
        asked = runtime(server)
        assert asked.exec("Which sold best?", tools=[]) == "Tea."
        run = last(asked)
        kinds = [type(block) for block in shown(run)]
        assert kinds[:2] == [ThinkingContent, ServerContent]
        for messages in (run.messages, Run.from_json(run.to_json()).messages):
            asked.exec("Sure?", tools=[], history=messages)
        assert bodies(server)[1] == bodies(server)[2]
        assert [item.get("id") for item in bodies(server)[1]["input"]] == [None, "rs_0", "ws_1", "msg_2", None]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def runtime(server: WireServer, **settings: Any) -> Runtime:
    return Runtime(model="openai-responses:gpt-test", api_key=KEY, base_url=f"{server.url}/v1", **settings)


def bodies(server: WireServer) -> list[dict[str, Any]]:
    return [asked.body for asked in server.asked]


def last(asked: Runtime) -> Run:
    assert asked.last_run is not None
    return asked.last_run


def shown(run: Run) -> Iterator[Any]:
    return (block for message in run.messages if isinstance(message, AssistantMessage) for block in message.content)


def one_end(connection: Connection) -> StreamEnd:
    request = Request("gpt-test", None, [UserMessage("Hi")], [ADD], connection=connection)
    return Reply(list(model("gpt-test").stream(request))).end
