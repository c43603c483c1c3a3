"""What every provider has to do, whatever its wire format. An adapter says how a provider's server would answer.

A provider's own test file makes a class of `Conformance` with its adapter, and adds what is special to it.
"""

from __future__ import annotations

import threading
import time

import pytest

from op_jupyter.errors import RunError
from op_jupyter.events import BlockDelta, BlockEnd, BlockStart
from op_jupyter.messages import Usage, UserMessage
from op_jupyter.providers import list_models
from tests.providers.adapter import KEY, Call, Reader, Reply, wait_for
from tests.providers.connections import Connections
from tests.providers.wire_server import Answer, Ending, WireServer


class Conformance(Connections):
    """The tests. A subclass whose name begins with `Test` sets `adapter`."""

    # ------------------------------------------------------------ what is streamed

    def test_text_arrives_piece_by_piece(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("It ", "is ", "3. 😀")]
        reply = self.ask(server)
        assert [event.text for event in reply.events if isinstance(event, BlockDelta)] == ["It ", "is ", "3. 😀"]
        assert [(block.kind, reply.text) for block in reply.content] == [("text", "It is 3. 😀")]
        assert reply.end.stop_reason == "stop"

    def test_a_request_can_be_left_after_its_first_piece_which_is_there_at_once(self, server: WireServer) -> None:
        server.script = [self.adapter.streamed(self.adapter.beginning("First"), then="silent")]
        reader = Reader(self.adapter.model(), self.request(server))
        assert wait_for(lambda: Reply(reader.events).text == "First")
        reader.abandon()
        assert reader.is_gone_within(1)

    def test_every_start_has_its_end_and_positions_count_up(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Let me ", "see", Call("c1", "add", ["{}"]), Call("c2", "now"))]
        reply = self.ask(server)
        starts = [event.index for event in reply.events if isinstance(event, BlockStart)]
        ends = [event.index for event in reply.events if isinstance(event, BlockEnd)]
        assert starts == [0, 1, 2]
        assert sorted(ends) == starts

    def test_a_call_arrives_with_its_arguments(self, server: WireServer) -> None:
        server.script = [self.adapter.answer(Call("c1", "add", ['{"a"', ": 1,", ' "b": 2}']))]
        reply = self.ask(server)
        assert [(call.name, call.arguments, call.raw_arguments) for call in reply.calls] == [
            ("add", {"a": 1, "b": 2}, None)
        ]
        assert reply.end.stop_reason == "tool_use"

    def test_parallel_calls_keep_their_order(self, server: WireServer) -> None:
        calls = [Call(f"c{n}", "add", [f'{{"a": {n}, ', f'"b": {n}}}']) for n in range(3)]
        server.script = [self.adapter.answer("Three at once.", *calls)]
        reply = self.ask(server)
        assert reply.text == "Three at once."
        assert [call.arguments["a"] for call in reply.calls] == [0, 1, 2]

    @pytest.mark.parametrize("pieces", [[], ["{}"]], ids=["nothing", "an empty object"])
    def test_a_call_without_arguments_has_none(self, server: WireServer, pieces: list[str]) -> None:
        server.script = [self.adapter.answer(Call("c1", "now", pieces))]
        assert [(call.arguments, call.raw_arguments) for call in self.ask(server).calls] == [({}, None)]

    def test_tokens_are_counted_once(self, server: WireServer) -> None:
        usage = Usage(input=20, output=30, cache_read=80)
        server.script = [self.adapter.answer("Hello", usage=usage)]
        end = self.ask(server).end
        assert (end.usage.input, end.usage.output, end.usage.cache_read) == (20, 30, 80)

    def test_the_system_prompt_and_the_prompt_are_sent_every_time(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        for _ in range(2):
            self.ask(server, UserMessage("The prompt."), system="The system prompt.")
        for asked in server.asked:
            assert "The system prompt." in str(asked.body)
            assert "The prompt." in str(asked.body)

    @pytest.mark.parametrize("system", ["", " \n"])
    def test_a_blank_system_prompt_is_none(self, server: WireServer, system: str) -> None:
        server.script = [self.adapter.answer("Hello"), self.adapter.answer("Hello")]
        self.ask(server, system=system)
        self.ask(server)
        assert server.asked[0].body == server.asked[1].body

    def test_half_a_character_in_a_message_does_not_keep_it_from_being_sent(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        assert self.ask(server, UserMessage("half \ud83d, whole 😀")).end.stop_reason == "stop"
        assert "half \ufffd, whole 😀" in str(server.asked[0].body)

    def test_a_server_that_leaves_the_socket_open_after_the_last_event_holds_nothing_up(
        self, server: WireServer
    ) -> None:
        complete = self.adapter.reply(["It is 3."], Usage())
        server.script = [self.adapter.streamed(complete, then="silent"), self.adapter.answer("Again 3.")]
        runtime = self.runtime(server, timeout=30)
        started = time.monotonic()
        assert [runtime.exec("1 + 2?", tools=[]) for _ in range(2)] == ["It is 3.", "Again 3."]
        assert time.monotonic() - started < 10

    # ------------------------------------------------------------ the models

    def test_the_models_of_the_server_are_listed(self, server: WireServer) -> None:
        names = ["some-b", "some-a"]
        server.script = [
            Answer(pieces=[body], headers={"content-type": "application/json"})
            for body in self.adapter.model_lists(names)
        ]
        prefix = self.adapter.model().provider
        listed = list_models(prefix, self.adapter.connection(server.url))
        assert listed == [f"{prefix}:some-a", f"{prefix}:some-b"]

    def test_a_server_that_does_not_list_its_models_says_why_in_one_line_without_the_key(
        self, server: WireServer
    ) -> None:
        server.script = [self.adapter.failed(403, f"Not with\n{KEY}")]
        with pytest.raises(RunError, match="Not with") as raised:
            list_models(self.adapter.model().provider, self.adapter.connection(server.url))
        assert raised.value.kind == "auth" and "\n" not in str(raised.value) and KEY not in str(raised.value)
        assert len(server.asked) == 1

    # ------------------------------------------------------------ errors

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (400, "provider"),
            (401, "auth"),
            (403, "auth"),
            (404, "not_found"),
            (429, "rate_limit"),
            (500, "provider"),
            (503, "provider"),
        ],
    )
    def test_an_error_response_has_its_kind_and_one_line(self, server: WireServer, status: int, kind: str) -> None:
        server.script = [self.adapter.failed(status, "Something\nis wrong")]
        reply = self.ask(server, max_retries=0)
        assert (reply.end.stop_reason, reply.end.error_kind) == ("error", kind)
        assert reply.end.error_message
        assert "\n" not in reply.end.error_message
        assert str(status) in reply.end.error_message
        assert reply.content == []

    def test_an_error_in_the_middle_of_the_stream_keeps_what_was_said(self, server: WireServer) -> None:
        pieces = [*self.adapter.beginning("Half a sen"), self.adapter.error_event("Out of order")]
        server.script = [self.adapter.streamed(pieces)]
        reply = self.ask(server)
        assert reply.end.stop_reason == "error"
        assert "Out of order" in (reply.end.error_message or "")
        assert reply.text == "Half a sen"
        assert reply.retries == []

    @pytest.mark.parametrize("then", ["cut", "whole"])
    def test_a_stream_without_its_closing_event_is_an_error(self, server: WireServer, then: Ending) -> None:
        server.script = [self.adapter.streamed(self.adapter.beginning("Half a sen"), then=then)]
        reply = self.ask(server)
        assert (reply.end.stop_reason, reply.end.error_kind) == ("error", "connection")
        assert reply.text == "Half a sen"
        assert reply.retries == [], "a retry would repeat what was shown"

    def test_a_character_split_over_two_reads_arrives_whole(self, server: WireServer) -> None:
        wire = b"".join(self.adapter.reply(["😀 done"], Usage()))
        middle = wire.find("😀".encode()) + 2
        middle = middle if middle > 1 else len(wire) // 2  # some formats escape it
        server.script = [self.adapter.streamed([wire[:middle], wire[middle:]])]
        assert self.ask(server).text == "😀 done"

    # ------------------------------------------------------------ retries

    @pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
    def test_what_may_pass_is_sent_again_and_said(self, server: WireServer, status: int) -> None:
        server.script = [
            self.adapter.failed(status, "Not just now", retry_after="0.01"),
            self.adapter.answer("It is 3."),
        ]
        reply = self.ask(server)
        assert reply.text == "It is 3."
        assert [retry.attempt for retry in reply.retries] == [1]
        assert str(status) in reply.retries[0].reason
        assert reply.events[0] == reply.retries[0]

    @pytest.mark.parametrize("status", [400, 401, 403, 404])
    def test_what_will_not_pass_is_not_sent_again(self, server: WireServer, status: int) -> None:
        server.script = [self.adapter.failed(status, "Never"), self.adapter.answer("It is 3.")]
        assert self.ask(server).end.stop_reason == "error"
        assert len(server.asked) == 1

    def test_a_lost_connection_is_tried_again_before_any_output(self, server: WireServer) -> None:
        server.script = [self.adapter.streamed([], then="cut"), self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert (reply.text, len(reply.retries)) == ("It is 3.", 1)

    def test_there_are_no_more_retries_than_allowed(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(503, "Not just now", retry_after="0.01") for _ in range(9)]
        reply = self.ask(server, max_retries=3)
        assert [retry.attempt for retry in reply.retries] == [1, 2, 3]
        assert len(server.asked) == 4
        assert reply.end.error_kind == "provider"

    def test_a_wait_that_is_too_long_is_not_waited(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(429, "Too many", retry_after="198300")]
        reply = self.ask(server)
        assert reply.retries == []
        assert reply.end.error_kind == "rate_limit"
        assert "198,300 s" in (reply.end.error_message or "")

    @pytest.mark.parametrize("nonsense", ["-1", "nan", "inf", "soon"])
    def test_a_wait_that_makes_no_sense_is_a_short_one(self, server: WireServer, nonsense: str) -> None:
        server.script = [self.adapter.failed(429, "Too many", retry_after=nonsense), self.adapter.answer("It is 3.")]
        reply = self.ask(server)
        assert reply.text == "It is 3."
        assert 0 < reply.retries[0].delay <= 0.5

    # ------------------------------------------------------------ leaving

    def test_a_request_can_be_left_before_the_headers_have_come(self, server: WireServer) -> None:
        server.script = [Answer(then="silent")]
        reader = Reader(self.adapter.model(), self.request(server))
        server.wait_until_asked()
        reader.abandon()
        assert reader.is_gone_within(1)
        assert reader.events == []

    def test_a_request_can_be_left_on_a_connection_that_was_used_before(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("It is 3."), Answer(then="silent")]
        assert self.ask(server).text == "It is 3."
        server.wait_until_asked()
        reader = Reader(self.adapter.model(), self.request(server))
        server.wait_until_asked()
        assert len(server.connections) == 1
        reader.abandon()
        assert reader.is_gone_within(1)

    def test_a_request_can_be_left_while_it_waits_to_be_sent_again(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(503, "Not just now", retry_after="29")]
        reader = Reader(self.adapter.model(), self.request(server))
        assert reader.something_came.wait(5)
        reader.abandon()
        assert reader.is_gone_within(1)
        assert len(server.asked) == 1

    def test_leaving_one_request_disturbs_no_other(self, server: WireServer) -> None:
        gate = threading.Event()
        pieces = self.adapter.reply(["Both", " are here"], Usage())
        said = len(self.adapter.beginning("Both"))
        readers: list[Reader] = []
        held_back: list[list[bytes | threading.Event]] = [
            [*pieces[:said], gate, *pieces[said:]],
            [gate, *pieces],
            [gate],
        ]
        for held in held_back:
            server.script = [self.adapter.streamed(held)]
            readers.append(Reader(self.adapter.model(), self.request(server)))
            server.wait_until_asked()
        *others, left = readers
        left.abandon()
        assert left.is_gone_within(1)
        gate.set()
        for reader in others:
            assert reader.is_gone_within(5)
            assert Reply(reader.events).text == "Both are here"

    def test_after_leaving_one_request_the_next_works_at_once(self, server: WireServer) -> None:
        server.script = [Answer(then="silent"), self.adapter.answer("It is 3.")]
        reader = Reader(self.adapter.model(), self.request(server))
        server.wait_until_asked()
        reader.abandon()
        assert self.ask(server).text == "It is 3."
        assert reader.is_gone_within(1)

    # ------------------------------------------------------------ many requests

    def test_many_requests_share_one_connection(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello") for _ in range(10)]
        for _ in range(10):
            assert self.ask(server).text == "Hello"
        assert len(server.connections) == 1
