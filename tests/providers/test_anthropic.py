"""`anthropic:` over real sockets: what every provider has to do, and what only this one has."""

from __future__ import annotations

import anthropic
import pytest

from op_jupyter import Run, RunError
from op_jupyter.messages import ServerContent, ThinkingContent
from op_jupyter.providers import Connection
from tests.conversation import add, the_run
from tests.providers.adapter import KEY, Reply, shown
from tests.providers.anthropic_wire import Anthropic, block, call, event, message_start, text, thinking, whole
from tests.providers.conformance import Conformance
from tests.providers.wire_server import WireServer


class TestAnthropic(Conformance):
    adapter = Anthropic()

    # ------------------------------------------------------------ the stream

    def test_an_overloaded_server_is_asked_again_before_any_output(self, server: WireServer) -> None:
        broken = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        server.script = [
            self.adapter.streamed([event(message_start()), broken]),
            self.adapter.failed(529, "Overloaded", retry_after="0.01"),
            self.adapter.answer("It is 3."),
        ]
        reply = self.ask(server)
        assert reply.text == "It is 3."
        assert ["Overloaded" in retry.reason for retry in reply.retries] == [True, True]

    @pytest.mark.parametrize("case", ["nothing changed", "the front is gone", "a key was in it"])
    def test_thinking_goes_back_while_it_and_all_before_it_are_as_they_were(
        self, server: WireServer, monkeypatch: pytest.MonkeyPatch, case: str
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_0123456789abcdefgh")
        thought = "Is it hf_0123456789abcdefgh?" if case == "a key was in it" else "Hm"
        first = whole(thinking(0, thought), call(1, "c1", "add", '{"a": 1, "b": 2}'), stop_reason="tool_use")
        second = whole(thinking(0, "3"), call(1, "c2", "add", '{"a": 3, "b": 4}'), stop_reason="tool_use")
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
        ("status", "message", "kind"),
        [
            (400, "Your credit balance is too low to access the Anthropic API.", "quota"),
            (400, "prompt is too long: 210000 tokens > 200000 maximum", "context"),
            (400, "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000", "context"),
            (413, "Request exceeds the maximum size", "provider"),
        ],
    )
    def test_what_no_second_try_helps_is_said_at_once(
        self, server: WireServer, status: int, message: str, kind: str
    ) -> None:
        server.script = [self.adapter.failed(status, message)]
        reply = self.ask(server)
        assert (reply.end.error_kind, reply.retries) == (kind, [])
        assert message in (reply.end.error_message or "")

    # ------------------------------------------------------------ keys, addresses, clients

    def test_a_key_may_come_from_the_environment(self, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
        server.script = [self.adapter.answer("Hello") for _ in range(3)]
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        assert self.end_of(Connection()).stop_reason == "stop", "a server of one's own needs none"
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a-token-of-mine")
        assert self.end_of(Connection()).stop_reason == "stop"
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        assert self.end_of(Connection()).stop_reason == "stop"
        sent = [asked.headers["Authorization"] for asked in server.asked]
        assert sent == ["Bearer none", "Bearer a-token-of-mine", f"Bearer {KEY}"]
        assert {asked.path for asked in server.asked} == {"/v1/messages"}

    def test_a_client_of_the_sdk_is_used_as_it_is(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        with anthropic.Anthropic(api_key=KEY, base_url=f"{server.url}/mine", default_headers={"x-mine": "y"}) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
        assert server.asked[0].path == "/mine/v1/messages"
        assert server.asked[0].headers["x-mine"] == "y"

    def test_a_client_for_vertex_finds_its_model(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.failed(403, "Not with ya29.secret-token!")]
        with anthropic.AnthropicVertex(
            region="europe-north1", project_id="fjord", access_token="ya29.secret-token", base_url=server.url
        ) as client:
            assert self.end_of(Connection(client=client)).stop_reason == "stop"
            message = self.end_of(Connection(client=client)).error_message or ""
        path = "/projects/fjord/locations/europe-north1/publishers/anthropic/models/claude-test:streamRawPredict"
        assert server.asked[0].path == path
        assert "model" not in server.asked[0].body
        assert message.endswith("Not with [redacted]!")

    def test_betas_are_asked_for_in_a_header(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        request = self.request(server)
        request.options["betas"] = ["mcp-client-2025-11-20", "compact-2026-01-12"]
        assert Reply(list(self.adapter.model().stream(request))).end.stop_reason == "stop"
        assert server.asked[0].headers["anthropic-beta"] == "mcp-client-2025-11-20,compact-2026-01-12"
        assert "betas" not in server.asked[0].body

    def test_thinking_and_a_forced_choice_are_said_without_asking_anyone(self, server: WireServer) -> None:
        options = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        with pytest.raises(RunError, match="tool_choice") as raised:
            self.runtime(server, options=options).exec("Hi", tools=[add], tool_choice="required")
        assert raised.value.kind == "setup"
        assert server.asked == []

    # ------------------------------------------------------------ a run

    def test_a_paused_reply_goes_on_in_the_next_round(self, server: WireServer) -> None:
        search = call(1, "s1", "web_search", '{"query": "tea"}', kind="server_tool_use")
        found = block(0, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})
        server.script = [
            self.adapter.streamed(whole(text(0, "Searching. "), search, stop_reason="pause_turn")),
            self.adapter.streamed(whole(found, text(1, "Tea it is."))),
        ]
        asked = self.runtime(server)
        assert asked.exec("Which sold best?", tools=[]) == "Tea it is."
        run = the_run(asked)
        assert (run.rounds, run.stop_reason) == (2, "stop")
        assert [block.name for block in shown(run) if isinstance(block, ServerContent)] == [
            "web_search",
            "web_search_tool_result",
        ]
        turn = server.asked[1].body["messages"][-1]
        assert (turn["role"], [block["type"] for block in turn["content"]]) == (
            "assistant",
            ["text", "server_tool_use"],
        )

    def test_pauses_without_end_reach_the_cap(self, server: WireServer) -> None:
        paused = whole(call(0, "s1", "web_search", kind="server_tool_use"), stop_reason="pause_turn")
        server.script = [self.adapter.streamed(paused) for _ in range(3)]
        asked = self.runtime(server)
        asked.exec("Which sold best?", tools=[], max_iterations=3)
        assert (the_run(asked).rounds, the_run(asked).hit_cap) == (3, True)

    def test_a_refusal_fails_the_run_with_its_reason_and_is_not_sent_again(self, server: WireServer) -> None:
        details = {"type": "refusal", "category": "bio", "explanation": "Against the policy."}
        server.script = [self.adapter.streamed(whole(stop_reason="refusal", stop_details=details))]
        with pytest.raises(RunError, match=r"bio.*Against the policy") as raised:
            self.runtime(server).exec("Hi", tools=[])
        assert (raised.value.kind, len(server.asked)) == ("filter", 1)

    def test_thinking_goes_back_as_it_came_until_the_functions_change(self, server: WireServer) -> None:
        thinks = [*thinking(0, "I need ", "add."), *call(1, "c1", "add", '{"a": 1, "b": 2}')]
        server.script = [
            self.adapter.streamed(whole(thinks, stop_reason="tool_use")),
            *(self.adapter.answer(said) for said in ("It is 3.", "It was 3.", "It was 3.")),
        ]
        asked = self.runtime(server, system="Be brief.")
        assert asked.exec("1 + 2?", tools=[add]) == "It is 3."
        assert any(isinstance(block, ThinkingContent) for block in shown(the_run(asked)))
        asked.exec("What was it?", tools=[add], history=the_run(asked).messages)
        asked.exec("What was it?", tools=[add, now], history=the_run(asked).messages)
        thought = {"type": "thinking", "thinking": "I need add.", "signature": "c2ln"}
        replies = [request.body["messages"][1]["content"] for request in server.asked[1:]]
        assert [reply[0] == thought for reply in replies] == [True, True, False]
        assert [reply[-1]["type"] for reply in replies] == ["tool_use"] * 3

    def test_a_run_that_was_recorded_can_be_read_again_and_goes_on(self, server: WireServer) -> None:
        search = call(1, "s1", "web_search", '{"query": "tea"}', kind="server_tool_use")
        found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"encrypted_content": "ZW5j"}]}
        reply = whole(thinking(0, "Hm"), search, block(2, found), text(3, "Tea."))
        server.script = [self.adapter.streamed(reply), self.adapter.answer("Yes."), self.adapter.answer("Yes.")]
        asked = self.runtime(server)
        asked.exec("Which sold best?", tools=[])
        run = the_run(asked)
        for messages in (run.messages, Run.from_json(run.to_json()).messages):
            asked.exec("Sure?", tools=[], history=messages)
        assert server.asked[1].body == server.asked[2].body
        kinds = [block["type"] for block in server.asked[1].body["messages"][1]["content"]]
        assert kinds == ["thinking", "server_tool_use", "web_search_tool_result", "text"]


def now() -> str:
    """Say what time it is."""
    return "noon"
