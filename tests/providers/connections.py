"""What every provider has to do about keys, addresses, clients, and answers that are no reply.

Part of the conformance tests, which say what their provider is; what a reply streams stands in `conformance`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from op_jupyter import Runtime
from op_jupyter.events import StreamEnd
from op_jupyter.messages import Message, UserMessage
from op_jupyter.providers import Connection, Request
from tests.providers.adapter import ADD, KEY, NOW, Adapter, Reply, wait_for
from tests.providers.wire_server import Answer, WireServer

HTML = {"content-type": "text/html"}


@pytest.mark.usefixtures("no_account")
class Connections:
    """The tests, and how they ask. A subclass sets `adapter`."""

    adapter: Adapter

    @pytest.fixture
    def server(self) -> Iterator[WireServer]:
        threads_before = threading.active_count()
        with WireServer().running() as server:
            yield server
        assert wait_for(lambda: threading.active_count() <= threads_before, 1), "a thread was left behind"

    def request(self, server: WireServer, *messages: Message, system: str | None = None, **settings: Any) -> Request:
        """A request; `settings` are those of the connection."""
        return Request(
            model=self.adapter.model().name,
            system=system,
            messages=list(messages) or [UserMessage("What is 1 + 2?")],
            tools=[ADD, NOW],
            connection=replace(self.adapter.connection(server.url), **settings),
        )

    def ask(self, server: WireServer, *messages: Message, system: str | None = None, **settings: Any) -> Reply:
        return Reply(list(self.adapter.model().stream(self.request(server, *messages, system=system, **settings))))

    def runtime(self, server: WireServer, **settings: Any) -> Runtime:
        return self.adapter.runtime(server.url, **settings)

    def end_of(self, connection: Connection) -> StreamEnd:
        """How a reply over `connection` ends."""
        return self.adapter.ask(connection).end

    # ------------------------------------------------------------ answers that are no reply

    def test_a_page_of_html_is_no_message(self, server: WireServer) -> None:
        page = b"<html><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"
        server.script = [Answer(status=502, pieces=[page], headers=HTML)]
        address = self.adapter.connection(server.url).base_url
        assert self.ask(server, max_retries=0).end.error_message == f"{address} answered 502: Bad Gateway"

    def test_a_reply_that_is_no_stream_is_said(self, server: WireServer) -> None:
        server.script = [Answer(pieces=[b"<html>Log in</html>"], headers=HTML)]
        end = self.ask(server).end
        assert (end.error_kind, "text/html" in (end.error_message or "")) == ("provider", True)

    def test_a_wrong_path_asks_for_the_base_url(self, server: WireServer) -> None:
        server.script = [Answer(status=404, pieces=[b"404 page not found"])]
        message = self.ask(server).end.error_message or ""
        assert message.endswith(f"answered 404: 404 page not found{self.adapter.base_url_hint}")

    def test_nobody_listens_at_the_address(self) -> None:
        with WireServer().running() as server:
            request = self.request(server, max_retries=0)
        end = Reply(list(self.adapter.model().stream(request))).end
        assert end.error_kind == "connection"
        assert server.url.removeprefix("http://") in (end.error_message or "")

    def test_silence_is_a_timeout(self, server: WireServer) -> None:
        server.script = [Answer(then="silent")]
        end = self.ask(server, timeout=0.1).end
        assert end.error_kind == "timeout"
        assert "0.1 s" in (end.error_message or "")

    def test_silence_in_mid_stream_is_a_timeout_that_keeps_what_was_said(self, server: WireServer) -> None:
        server.script = [self.adapter.streamed(self.adapter.beginning("Half"), then="silent")]
        reply = self.ask(server, timeout=1)
        assert (reply.text, reply.end.error_kind) == ("Half", "timeout")
        assert "1 s" in (reply.end.error_message or "")

    def test_a_reply_that_is_not_read_to_its_end_gives_its_connection_back(self, server: WireServer) -> None:
        server.script = [self.adapter.streamed([self.adapter.error_event("Out of order")], then="silent")]
        assert "Out of order" in (self.ask(server, max_retries=0).end.error_message or "")
        (connection,) = server.connections
        connection.settimeout(5)
        assert connection.recv(1) == b"", "the other side is open still"

    # ------------------------------------------------------------ keys

    def test_the_key_is_sent(self, server: WireServer) -> None:
        server.script = [self.adapter.answer("Hello")]
        self.ask(server)
        assert any(KEY in value for value in server.asked[0].headers.values())

    @pytest.mark.parametrize("status", [400, 401, 403, 429])
    def test_the_key_is_in_no_error(self, server: WireServer, status: int) -> None:
        server.script = [self.adapter.failed(status, f"Incorrect API key provided: {KEY}")]
        reply = self.ask(server, max_retries=0)
        assert reply.end.error_message
        assert KEY not in repr(reply.events)
        assert KEY[:12] not in repr(reply.events)

    def test_a_missing_key_is_said_without_asking_anyone(self) -> None:
        for _ in range(2):
            end = self.end_of(Connection())
            assert (end.error_kind, self.adapter.key_name in (end.error_message or "")) == ("auth", True)

    def test_a_refused_key_says_how_to_give_another(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(401, "Incorrect API key provided: sk-confo****cdef.")]
        message = self.ask(server).end.error_message or ""
        assert self.adapter.key_name in message
        assert "cdef" not in message

    # ------------------------------------------------------------ addresses and clients

    def test_an_address_without_http_is_said_at_once(self) -> None:
        end = self.end_of(self.adapter.connection("localhost:8080"))
        assert (end.error_kind, "http://" in (end.error_message or "")) == ("setup", True)

    def test_a_password_in_the_address_is_in_no_error(self, server: WireServer) -> None:
        server.script = [self.adapter.failed(500, "No"), Answer(pieces=[b"{}"], headers=HTML)]
        connection = self.adapter.connection(server.url.replace("http://", "http://ada:lovelace-1815@"))
        for _ in range(2):
            end = self.end_of(replace(connection, max_retries=0))
            assert "lovelace" not in (end.error_message or "lovelace")

    def test_another_object_as_client_is_said(self) -> None:
        for client in (object(), self.adapter.other_client()):
            end = self.end_of(Connection(client=client))
            assert (end.error_kind, self.adapter.client_name in (end.error_message or "")) == ("setup", True)
