"""A server on loopback that plays back scripted answers over real sockets, and keeps what it was asked.

It knows no provider: what an answer holds is the business of the tests.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, cast

Ending = Literal["whole", "cut", "silent"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One response. The headers go out with the first of `pieces`; a piece that is an event is waited for.

    After the pieces the response is `"whole"`, breaks off with the connection (`"cut"`), or stays `"silent"` for as
    long as the server lives.
    """

    pieces: Sequence[bytes | threading.Event] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    then: Ending = "whole"


@dataclass(frozen=True)
class Asked:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class WireServer:
    """Gives the answers of `script` in order; asked for more than there are, it answers 418.

    Attributes:
        url: where it listens, without a path.
        asked: the requests so far.
        connections: one for each time a client has connected.
    """

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.asked: list[Asked] = []
        self.connections: list[socket.socket] = []
        self.closing = threading.Event()
        self._arrivals: SimpleQueue[Asked] = SimpleQueue()
        self._http = _HTTPServer(self)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def reset(self) -> None:
        """Forget what was asked, and what was still to be answered."""
        self.script.clear()
        self.asked.clear()
        self._arrivals = SimpleQueue()

    def wait_until_asked(self) -> Asked:
        """The next request that was not waited for yet."""
        return self._arrivals.get(timeout=10)

    def take(self, asked: Asked) -> Answer:
        """Note a request, and say what to answer."""
        self.asked.append(asked)
        answer = self.script.pop(0) if self.script else Answer(status=418, pieces=[b"The script has run out."])
        self._arrivals.put(asked)
        return answer

    def speak_tls(self, key: Path, certificate: Path) -> None:
        """Speak TLS with this certificate, from the next start on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    @contextmanager
    def running(self) -> Generator[WireServer]:
        """Serve until the end of the block; then nothing of it is left."""
        thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="wire server")
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()
            self._http.shutdown()
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._http.server_close()  # joins the threads of the connections
            thread.join()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, wire: WireServer) -> None:
        self.wire = wire
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _wire(self) -> WireServer:
        return cast(_HTTPServer, self.server).wire

    def setup(self) -> None:
        super().setup()
        self._wire.connections.append(self.connection)

    def do_GET(self) -> None:
        self._answer(b"{}")

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True  # the client has left
            return
        self._answer(body)

    def _answer(self, body: bytes) -> None:
        answer = self._wire.take(Asked(self.path, dict(self.headers), json.loads(body)))
        try:
            self._send(answer)
        except OSError:
            self.close_connection = True  # the client has left

    def _send(self, answer: Answer) -> None:
        has_headers = False
        for piece in answer.pieces:
            if isinstance(piece, threading.Event):
                self._wait_for(piece)
                continue
            if not has_headers:
                self._send_headers(answer)
                has_headers = True
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if answer.then == "whole":
            if not has_headers:
                self._send_headers(answer)
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if answer.then == "silent":
            self._wire.closing.wait()

    def _send_headers(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("transfer-encoding", "chunked")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _wait_for(self, event: threading.Event) -> None:
        while not event.wait(0.01):
            if self._wire.closing.is_set():
                raise ConnectionAbortedError

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""
