"""`bedrock:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

from typing import Any

import pytest

from op_jupyter import Run, RunError
from op_jupyter.messages import AssistantMessage, ThinkingContent, Usage
from op_jupyter.providers import resolve
from tests.conversation import add, the_run
from tests.providers.adapter import Call
from tests.providers.bedrock_wire import (
    CLAUDE,
    SECRET,
    TOKEN,
    Bedrock,
    account,
    call,
    event,
    exception,
    reasoning,
    text,
    whole,
)
from tests.providers.conformance import Conformance
from tests.providers.wire_server import Answer, WireServer

pytest.importorskip("boto3", reason="needs op_jupyter[bedrock]")


class TestBedrock(Conformance):
    adapter = Bedrock()

    # ------------------------------------------------------------ the stream

    @pytest.mark.parametrize("then", ["whole", "cut"])
    def test_a_reply_is_complete_when_its_end_was_said_though_its_usage_never_comes(
        self, server: WireServer, then: Any
    ) -> None:
        without_usage = self.adapter.reply(["It is 3."], Usage())[:-1]
        server.script = [self.adapter.streamed(without_usage, then=then)]
        reply = self.ask(server)
        assert (reply.text, reply.end.stop_reason, reply.end.usage) == ("It is 3.", "stop", Usage())

    @pytest.mark.parametrize(
        ("kind", "sent_again"),
        [
            ("throttlingException", True),
            ("validationException", False),
        ],
    )
    def test_an_exception_in_the_stream_before_any_output(
        self, server: WireServer, kind: str, sent_again: bool
    ) -> None:
        start = event("messageStart", {"role": "assistant"})
        server.script = [self.adapter.streamed([start, exception(kind, "Too much")]), self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert [kind in retry.reason for retry in reply.retries] == [True] * sent_again
        assert (reply.text, reply.end.stop_reason) == (("It is 3.", "stop") if sent_again else ("", "error"))

    def test_throttling_in_mid_stream_keeps_its_kind_and_what_was_said(self, server: WireServer) -> None:
        pieces = [*self.adapter.beginning("Half"), exception("throttlingException", "Too many tokens, please wait.")]
        server.script = [self.adapter.streamed(pieces)]
        reply = self.ask(server)
        assert (reply.text, reply.end.error_kind, reply.retries) == ("Half", "rate_limit", [])

    @pytest.mark.parametrize("reason", ["guardrail_intervened", "content_filtered"])
    def test_what_a_filter_stops_is_an_error_and_not_sent_again(self, server: WireServer, reason: str) -> None:
        server.script = [self.adapter.streamed(whole(text(0, "I cannot say."), stop_reason=reason))]
        reply = self.ask(server)
        assert (reply.end.stop_reason, reply.end.error_kind, reply.end.finish) == ("error", "filter", reason)
        assert (reply.text, reply.retries) == ("I cannot say.", [])

    def test_a_broken_frame_is_a_broken_connection(self, server: WireServer) -> None:
        pieces = self.adapter.reply(["It is 3."], Usage())
        pieces[1] = pieces[1].replace(b"It is 3.", b"It is 4.")
        server.script = [self.adapter.streamed(pieces), self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert ("broke" in reply.retries[0].reason, reply.text) == (True, "It is 3.")

    @pytest.mark.parametrize("case", ["nothing changed", "the front is gone", "a key was in it"])
    def test_thinking_goes_back_while_it_and_all_before_it_are_as_they_were(
        self, server: WireServer, monkeypatch: pytest.MonkeyPatch, case: str
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_0123456789abcdefgh")
        thought = "Is it hf_0123456789abcdefgh?" if case == "a key was in it" else "Hm"
        first = whole(reasoning(0, thought), call(1, "c1", "add", '{"a": 1, "b": 2}'), stop_reason="tool_use")
        second = whole(reasoning(0, "3"), call(1, "c2", "add", '{"a": 3, "b": 4}'), stop_reason="tool_use")
        server.script = [
            self.adapter.answer("Hello"),
            self.adapter.streamed(first),
            self.adapter.streamed(second),
            self.adapter.answer("It is 7."),
            self.adapter.answer("Yes."),
        ]
        asking = self.runtime(server)
        asking.exec("Hi", tools=[add])
        asking.exec("1 + 2 + 4?", tools=[add], history=the_run(asking).messages)
        kept = the_run(asking).messages[2:] if case == "the front is gone" else the_run(asking).messages
        asking.exec("Sure?", tools=[add], history=kept)
        thoughts = [str(asked.body["messages"]).count("c2ln") for asked in server.asked]
        assert thoughts == [0, 0, 1, 2, 2 if case == "nothing changed" else 0]

    # ------------------------------------------------------------ errors

    @pytest.mark.parametrize(
        ("status", "code", "message", "kind", "to_do"),
        [
            (400, "ValidationException", "Input is too long for requested model.", "context", ""),
            (400, "ValidationException", "prompt is too long: 210000 tokens > 200000 maximum", "context", ""),
            (400, "ValidationException", "Input Tokens Exceeded: Number of input tokens exceeds it", "context", ""),
            (400, "ValidationException", "The provided model identifier is invalid.", "not_found", "region"),
            (400, "ValidationException", "Invocation of model ID x with on-demand throughput isn’t", "provider", "eu."),
            (400, "ValidationException", "This model doesn't support tool use.", "provider", "tools=[]"),
            (
                400,
                "ValidationException",
                "This model doesn't support the toolConfig.toolChoice.any",
                "provider",
                "auto",
            ),
            (403, "AccessDeniedException", "Your request did not allow prompt caching.", "auth", '"cachePoint": None'),
            (400, "ServiceQuotaExceededException", "Too many", "quota", ""),
            (403, "AccessDeniedException", "You don't have access to the model.", "auth", "Bedrock console"),
            (403, "AccessDeniedException", "Please make sure your API Key is valid.", "auth", "api_key="),
            (403, "ExpiredTokenException", "The security token is expired", "auth", "aws sso login"),
            (400, "ExpiredTokenException", "The security token is expired", "auth", "aws sso login"),
            (403, "UnrecognizedClientException", "The security token is invalid.", "auth", "AWS_PROFILE"),
            (403, "InvalidSignatureException", "Signature expired: 2026\nAll that was signed", "auth", "clock"),
            (404, "ResourceNotFoundException", "This model version has reached its end of life.", "not_found", ""),
            (429, "ThrottlingException", "Too many tokens per day, please wait.", "quota", ""),
        ],
    )
    def test_what_no_second_try_helps_says_what_does(
        self, server: WireServer, status: int, code: str, message: str, kind: str, to_do: str
    ) -> None:
        body = f'{{"message": "{message}"}}'.replace("\n", "\\n").encode()
        headers = {"content-type": "application/json", "x-amzn-errortype": f"{code}:http://internal.amazon.com/"}
        server.script = [Answer(status=status, pieces=[body], headers=headers)]
        reply = self.ask(server)
        said = reply.end.error_message or ""
        assert (reply.end.error_kind, reply.retries, len(server.asked)) == (kind, [], 1)
        assert said.startswith(f"{server.url} answered {status} {code}: {message.splitlines()[0].rstrip('.')}")
        assert to_do in said
        assert "All that was signed" not in said

    @pytest.mark.parametrize(("status", "code"), [(424, "ModelErrorException"), (429, "ModelNotReadyException")])
    def test_a_model_that_fails_is_asked_again(self, server: WireServer, status: int, code: str) -> None:
        headers = {"content-type": "application/json", "x-amzn-errortype": code, "retry-after": "0.01"}
        failed = Answer(status=status, pieces=[b'{"message": "The model failed"}'], headers=headers)
        server.script = [failed, self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert ([code in retry.reason for retry in reply.retries], reply.text) == ([True], "It is 3.")

    def test_what_was_signed_is_in_no_error(self, server: WireServer) -> None:
        client = account().client("bedrock-runtime", endpoint_url=server.url)
        server.script = [self.adapter.answer("Hello")]
        assert self.ask(server, client=client).end.stop_reason == "stop"
        sent = server.asked[0].headers
        assert "/eu-north-1/bedrock/aws4_request" in sent["Authorization"]
        assert sent["X-Amz-Security-Token"] == TOKEN
        signature = sent["Authorization"].rpartition("=")[2]
        server.script = [self.adapter.failed(400, f"You sent {sent['Authorization']} with {TOKEN}")]
        said = self.ask(server, client=client).end.error_message or ""
        assert "You sent [redacted]" in said
        assert [secret in said for secret in (TOKEN, signature, SECRET)] == [False] * 3

    # ------------------------------------------------------------ a run

    def test_reasoning_goes_back_as_it_came_until_the_functions_change(self, server: WireServer) -> None:
        thinks = [*reasoning(0, "I need ", "add."), *call(1, "c1", "add", '{"a": 1, "b": 2}')]
        server.script = [
            self.adapter.streamed(whole(thinks, stop_reason="tool_use")),
            *(self.adapter.answer(said) for said in ("It is 3.", "It was 3.", "It was 3.")),
        ]
        asked = self.runtime(server, system="Be brief.")
        assert asked.exec("1 + 2?", tools=[add]) == "It is 3."
        run = the_run(asked)
        shown = [block for one in run.messages if isinstance(one, AssistantMessage) for block in one.content]
        assert any(isinstance(block, ThinkingContent) for block in shown)
        asked.exec("What was it?", tools=[add], history=Run.from_json(run.to_json()).messages)
        asked.exec("What was it?", tools=[add, now], history=run.messages)
        thought = {"reasoningContent": {"reasoningText": {"text": "I need add.", "signature": "c2ln"}}}
        replies = [request.body["messages"][1]["content"] for request in server.asked[1:]]
        assert [reply[0] == thought for reply in replies] == [True, True, False]
        assert ["toolUse" in reply[-1] for reply in replies] == [True] * 3

    def test_without_a_choice_of_none_no_function_runs_all_the_same(self, server: WireServer) -> None:
        server.script = [self.adapter.answer(Call("c1", "never")), self.adapter.answer("It is 3.")]
        asked = self.runtime(server)
        assert asked.exec("1 + 2?", tools=[never], tool_choice="none") == "It is 3."
        assert "toolConfig" not in server.asked[0].body
        assert [tool["toolSpec"]["name"] for tool in server.asked[1].body["toolConfig"]["tools"][:1]] == ["never"]

    def test_thinking_and_a_forced_choice_are_said_without_asking_anyone(self, server: WireServer) -> None:
        options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        with pytest.raises(RunError, match="tool_choice") as raised:
            self.runtime(server, options=options).exec("Hi", tools=[add], tool_choice="required")
        assert raised.value.kind == "setup"
        assert server.asked == []


def now() -> str:
    """Say what time it is."""
    return "noon"


def never() -> str:
    """Must not run."""
    raise AssertionError


# -------------------------------------------------------------------- the model


def test_a_model_of_anthropic_reads_more() -> None:
    assert [resolve(f"bedrock:{name}").context_tokens for name in (CLAUDE, "")] == [200_000, 128_000]
