"""A server in a process of its own, so that what it costs is in no measurement; it gives every request one answer.

It knows no provider: the bytes of the answer are given to it.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection


@contextmanager
def answering(content_type: str, pieces: list[bytes]) -> Iterator[str]:
    """Answer every POST with these pieces, each sent by itself; gives the address."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, content_type, pieces), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(parent: Connection, content_type: str, pieces: list[bytes]) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    answer = [head, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        parent.send(listener.getsockname()[1])
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_answer_each, args=(connection, answer), daemon=True).start()


def _answer_each(connection: socket.socket, answer: list[bytes]) -> None:
    with connection, connection.makefile("rb") as requests:
        while requests.readline():
            length = 0
            while (line := requests.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                elif name.lower() == b"expect":
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            requests.read(length)
            for piece in answer:
                connection.sendall(piece)
