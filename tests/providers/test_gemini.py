"""`gemini:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from google import genai
from google.oauth2.credentials import Credentials

from op_jupyter import Run, RunError
from op_jupyter.messages import ServerContent, ThinkingContent, Usage, UserMessage
from op_jupyter.providers import Connection, Request
from op_jupyter.providers.gemini import model
from tests.conversation import add, the_run
from tests.providers.adapter import KEY, Reply, shown
from tests.providers.conformance import Conformance
from tests.providers.gemini_wire import COUNTED, MODEL, Gemini, call, chunk, event, text, thought, whole
from tests.providers.wire_server import Answer, WireServer


class TestGemini(Conformance):
    adapter = Gemini()

    # ------------------------------------------------------------ the stream

    def test_it_asks_for_a_stream_of_events(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        self.ask(server)
        assert server.asked[0].path == f"/v1/models/{MODEL}:streamGenerateContent?alt=sse"

    def test_a_count_that_comes_after_the_end_is_waited_for(self, server: WireServer) -> None:
        pieces = [event(chunk(text("3."), finish="STOP", usage=None)), event({"usageMetadata": COUNTED})]
        server.script = [self.adapter.streamed(pieces)]
        assert self.ask(server).end.usage == Usage(input=7, output=3)

    def test_a_list_of_chunks_is_as_good_as_a_stream(self, server: WireServer) -> None:
        chunks = [chunk(text("It "), usage=None), chunk(text("is 3."), finish="STOP")]
        pieces = [b"[", json.dumps(chunks[0]).encode(), b"\n,\r\n", json.dumps(chunks[1]).encode(), b"\n]\n"]
        server.script = [Answer(pieces=pieces, headers={"content-type": "application/json; charset=UTF-8"})]
        reply = self.ask(server)
        assert (reply.text, reply.end.stop_reason) == ("It is 3.", "stop")

    @pytest.mark.parametrize("listed", [False, True])
    def test_an_error_that_is_no_event_is_read_all_the_same(self, server: WireServer, listed: bool) -> None:
        error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
        plain = json.dumps([error] if listed else error, indent=2).encode()
        begun = event(chunk(text("Half a sen")))
        server.script = [
            self.adapter.streamed([b"\r\n", plain + b"\n"]),
            self.adapter.streamed([begun + plain[:9], plain[9:]]),
        ]
        reply = self.ask(server)
        assert ["overloaded" in retry.reason for retry in reply.retries] == [True]
        assert reply.text == "Half a sen"
        assert reply.end.error_message == "The server answered 503 UNAVAILABLE: The model is overloaded."

    def test_a_call_that_went_wrong_is_asked_for_again_before_any_output(self, server: WireServer) -> None:
        malformed = event(chunk(finish="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: add("))
        server.script = [self.adapter.streamed([malformed]), self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert reply.text == "It is 3."
        assert ["MALFORMED_FUNCTION_CALL" in retry.reason for retry in reply.retries] == [True]

    # ------------------------------------------------------------ errors

    @pytest.mark.parametrize(
        ("status", "error", "kind"),
        [
            (400, {"status": "INVALID_ARGUMENT", "message": "API key not valid. Please pass a valid API key."}, "auth"),
            (400, {"message": "The input token count (2000000) exceeds the maximum number of tokens"}, "context"),
            (
                429,
                {
                    "message": "You exceeded your current quota",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}],
                },
                "quota",
            ),
        ],
    )
    def test_what_no_second_try_helps_is_said_at_once(
        self, server: WireServer, status: int, error: dict[str, Any], kind: str
    ) -> None:
        server.script = [failed(status, error)]
        reply = self.ask(server)
        assert (reply.end.error_kind, reply.retries) == (kind, [])
        assert str(status) in (reply.end.error_message or "")

    def test_it_waits_as_long_as_the_body_of_the_error_asks(self, server: WireServer) -> None:
        error = {
            "message": "You exceeded your current quota",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.02s"},
            ],
        }
        server.script = [failed(429, error), failed(429, [{"error": error}]), self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert reply.text == "It is 3."
        assert [retry.delay for retry in reply.retries] == [0.02, 0.02]

    def test_a_page_in_another_encoding_is_no_message(self, server: WireServer) -> None:
        page = "<html>Accès refusé</html>".encode("latin-1")
        server.script = [Answer(status=502, pieces=[page], headers={"content-type": "text/html"})]
        end = self.ask(server, max_retries=0).end
        assert (end.error_kind, server.url in (end.error_message or "")) == ("provider", True)

    def test_a_key_that_has_expired_is_a_refused_one(self, server: WireServer) -> None:
        server.script = [failed(400, {"message": "API key expired.", "details": [{"reason": "API_KEY_INVALID"}]})]
        assert "GEMINI_API_KEY" in (self.ask(server).end.error_message or "")

    def test_a_name_that_is_none_is_said_without_asking_anyone(self, server: WireServer) -> None:
        request = Request("a?b", None, [UserMessage("Hi")], [], connection=self.adapter.connection(server.url))
        end = Reply(list(model("a?b").stream(request))).end
        assert (end.error_kind, server.asked) == ("setup", [])
        assert (end.error_message or "").startswith("a?b cannot be asked")

    # ------------------------------------------------------------ keys, addresses, clients

    def test_a_key_may_come_from_the_environment(self, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
        server.script = [self.adapter.answer("Hello") for _ in range(3)]
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        assert self.end_of(Connection()).stop_reason == "stop", "a server of one's own needs none"
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        assert self.end_of(Connection()).stop_reason == "stop"
        monkeypatch.delenv("GEMINI_API_KEY")
        monkeypatch.setenv("GOOGLE_API_KEY", f"{KEY}-2")
        assert self.end_of(Connection()).stop_reason == "stop"
        assert [asked.headers["x-goog-api-key"] for asked in server.asked] == ["none", KEY, f"{KEY}-2"]

    def test_the_environment_may_say_vertex(self, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("GOOGLE_API_KEY", KEY)
        assert self.end_of(Connection(base_url=server.url)).stop_reason == "stop"
        assert self.end_of(Connection(base_url=server.url, api_key=KEY)).stop_reason == "stop", "a key is for the other"
        assert [asked.path.partition(MODEL)[0] for asked in server.asked] == [
            "/v1beta1/publishers/google/models/",
            "/v1/models/",
        ]

    def test_an_account_that_is_not_there_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "fjord")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/account.json")
        end = self.end_of(Connection())
        assert (end.error_kind, "gcloud auth" in (end.error_message or "")) == ("auth", True)

    def test_a_client_of_the_sdk_is_used_as_it_is(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.failed(403, f"Not with {KEY}!")]
        options = genai.types.HttpOptions(base_url=f"{server.url}/mine", headers={"x-mine": "y"}, api_version="v1")
        with genai.Client(api_key=KEY, http_options=options) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
            message = self.end_of(Connection(client=client)).error_message or ""
        assert server.asked[0].path.startswith("/mine/v1/models/")
        assert server.asked[0].headers["x-mine"] == "y"
        assert message.endswith("Not with [redacted]!")

    def test_a_client_over_httpx_is_one_too(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        with httpx.Client() as http:
            options = genai.types.HttpOptions(base_url=server.url, httpx_client=http)
            assert self.end_of(Connection(client=genai.Client(api_key=KEY, http_options=options))).stop_reason == "stop"

    def test_a_client_for_vertex_finds_its_model(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.failed(403, "Not with ya29.secret-token!")]
        with on_vertex(server) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
            message = self.end_of(Connection(client=client)).error_message or ""
        path = f"/v1beta1/projects/fjord/locations/europe-north1/publishers/google/models/{MODEL}"
        assert server.asked[0].path == f"{path}:streamGenerateContent?alt=sse"
        assert server.asked[0].headers["Authorization"] == "Bearer ya29.secret-token"
        assert message.endswith("Not with [redacted]!")

    # ------------------------------------------------------------ a run

    def test_a_blocked_prompt_fails_the_run_with_its_reason(self, server: WireServer) -> None:
        feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "Against the policy."}
        server.script = [self.adapter.streamed([event({"promptFeedback": feedback, "usageMetadata": {}})])]
        with pytest.raises(RunError, match=r"PROHIBITED_CONTENT.*Against the policy") as raised:
            self.runtime(server).exec("Hi", tools=[])
        assert raised.value.kind == "filter"

    def test_signatures_go_back_on_the_parts_they_came_with(self, server: WireServer) -> None:
        server.script = [
            self.adapter.streamed(whole(thought("I need add."), call("add", "c2lnMQ==", args={"a": 1, "b": 2}))),
            self.adapter.streamed(whole(text("It "), text("is 3."), text("", thoughtSignature="c2lnMg=="))),
            self.adapter.answer("It was 3."),
        ]
        asked = self.runtime(server, system="Be brief.")
        assert asked.exec("1 + 2?", tools=[add]) == "It is 3."
        assert any(isinstance(block, ThinkingContent) for block in shown(the_run(asked)))
        asked.exec("What was it?", tools=[add], history=the_run(asked).messages)
        (_, first, answer, second, _) = server.asked[2].body["contents"]
        made = {"id": "call_1", "name": "add", "args": {"a": 1, "b": 2}}
        assert first["parts"] == [
            {"text": "I need add.", "thought": True},
            {"functionCall": made, "thoughtSignature": "c2lnMQ=="},
        ]
        assert answer["parts"][0]["functionResponse"]["id"] == "call_1"
        assert second["parts"] == [{"text": "It is 3."}, {"text": "", "thoughtSignature": "c2lnMg=="}]

    def test_a_run_that_was_recorded_can_be_read_again_and_goes_on(self, server: WireServer) -> None:
        code = {"executableCode": {"language": "PYTHON", "code": "1 + 2", "id": "x1"}, "thoughtSignature": "c2ln"}
        ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "3\n", "id": "x1"}}
        png = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
        reply = whole(thought("Hm"), code, ran, text("3. "), png)
        server.script = [self.adapter.streamed(reply), self.adapter.answer("Yes."), self.adapter.answer("Yes.")]
        asked = self.runtime(server)
        asked.exec("1 + 2?", tools=[])
        run = the_run(asked)
        assert [block.name for block in shown(run) if isinstance(block, ServerContent)] == [
            "executableCode",
            "codeExecutionResult",
        ]
        for messages in (run.messages, Run.from_json(run.to_json()).messages):
            asked.exec("Sure?", tools=[], history=messages)
        assert server.asked[1].body == server.asked[2].body
        assert server.asked[1].body["contents"][1]["parts"] == [thought("Hm"), code, ran, text("3. "), png]


def failed(status: int, error: Any) -> Answer:
    body = error if isinstance(error, list) else {"error": {"code": status} | error}
    return Answer(status=status, pieces=[json.dumps(body).encode()], headers={"content-type": "application/json"})


def on_vertex(server: WireServer) -> genai.Client:
    account = Credentials("ya29.secret-token")  # type: ignore[no-untyped-call]  # google-auth has no types
    return genai.Client(
        vertexai=True,
        project="fjord",
        location="europe-north1",
        credentials=account,
        http_options=genai.types.HttpOptions(base_url=server.url),
    )
