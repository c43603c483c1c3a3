"""`local:` runs a GGUF model in process, through `xllamacpp`.

The native server, the thread that a reply is made in, and the events of that reply live here; what the model is told
is in `_small_model`, the download of the default model in `_model_files`.
"""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import threading
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any, assert_never

from op_jupyter.errors import RunError
from op_jupyter.events import BlockDelta, BlockEnd, BlockStart, StreamEnd, StreamEvent
from op_jupyter.messages import AssistantMessage, StopReason, TextContent, ToolCall, Usage
from op_jupyter.providers import Abandonment, Connection, Model, Request
from op_jupyter.providers._model_files import DEFAULT_MODEL, download_model, is_downloaded
from op_jupyter.providers._shared import one_line
from op_jupyter.providers._small_model import chat, in_json, read_json, read_text
from op_jupyter.providers._wire import as_dict, as_list, as_str, parse_arguments, to_json

DOWNLOAD = "python -m op_jupyter.providers.local"
CONTEXT = 8192
# Whoever leaves a request waits for the batch of the prompt that is under way; larger ones are no faster on a CPU.
BATCH = 64
# The prompts of nested runs, say, do not push each other out of it.
PROMPT_CACHE_MIB = 512
# Without a limit an answer of a small model may go on for ever.
DEFAULTS: dict[str, Any] = {"temperature": 0, "seed": 0, "max_tokens": 1024}


def model(name: str) -> Model:
    """The model in the GGUF file `name`, or with no name the default one, from the cache folder; not loaded yet.

    Raises:
        RunError: of kind `setup`, when the file is missing, or is no GGUF file.
    """
    if name in ("", Path(DEFAULT_MODEL.name).stem):
        path = DEFAULT_MODEL.path
        if not is_downloaded(DEFAULT_MODEL):
            raise RunError(f"The local model is not downloaded yet: run {DOWNLOAD}", kind="setup")
    else:
        path = Path(name).expanduser().absolute()
    _check_file(path)
    return Model("local", path.stem, partial(_stream, path), CONTEXT)


def models(connection: Connection) -> list[str]:
    """The default model, where it is downloaded; any other is named by its file."""
    return [Path(DEFAULT_MODEL.name).stem] if is_downloaded(DEFAULT_MODEL) else []


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as content:
            magic = content.read(4)
    except OSError as error:
        raise RunError(f"Cannot read the model {path}: {error.strerror}", kind="setup") from error
    if magic != b"GGUF":
        raise RunError(f"{path} is not a GGUF file: local: runs models in that format only", kind="setup")


# -------------------------------------------------------------------- the reply


def _stream(path: Path, request: Request) -> Iterator[StreamEvent]:
    """The reply as one block, an answer or a call, which grows as it is written."""
    body = DEFAULTS | chat(request) | request.options | {"stream": True, "return_progress": True}
    call_id = f"call_{1 + sum(len(m.tool_calls) for m in request.messages if isinstance(m, AssistantMessage))}"
    read = read_json if in_json(request) else read_text
    reply = shown = finish = ""
    block: TextContent | ToolCall | None = None
    final: dict[str, Any] = {}
    try:
        for final in _completion(path, to_json(body), request.on_abandon):
            choice = _choice(final)
            finish = as_str(choice.get("finish_reason"))
            reply += as_str(as_dict(choice.get("delta")).get("content"))
            known = read(reply)
            if known is None:
                continue
            if block is None:
                block = TextContent("") if known.call is None else ToolCall(call_id, known.call)
                yield BlockStart(0, block)
            if len(known.text) > len(shown):
                yield BlockDelta(0, known.text[len(shown) :])
                shown = known.text
        if not finish:
            raise RunError("The reply was left before its end")
    except Exception as error:
        kind = error.kind if isinstance(error, RunError) else "provider"
        message = one_line(str(error) if isinstance(error, RunError) else f"{path.stem}: {error}")
        yield StreamEnd("error", error_message=message, error_kind=kind)
        return
    stop_reason: StopReason = "length" if finish == "length" else "tool_use" if isinstance(block, ToolCall) else "stop"
    match block:
        case TextContent():
            yield BlockEnd(0, TextContent(shown))
        case ToolCall():
            yield BlockEnd(0, ToolCall(call_id, block.name, *parse_arguments(shown)))
        case None:
            pass
        case _:
            assert_never(block)
    yield StreamEnd(stop_reason, finish, _usage(final))


def _choice(chunk: dict[str, Any]) -> dict[str, Any]:
    """The one choice of a chunk; a chunk that has none is an error.

    Raises:
        RunError: for what the server says.
    """
    choices = as_list(chunk.get("choices"))
    if choices:
        return as_dict(choices[0])
    error = as_dict(chunk.get("error", chunk))
    if error.get("type") == "exceed_context_size_error":
        raise RunError(
            f"The conversation is longer than the {CONTEXT:,} tokens that fit the model: start a new one, or say less",
            kind="context",
        )
    raise RunError(f"The model stopped: {error.get('message', 'no reason given')}")


def _usage(final: dict[str, Any]) -> Usage:
    timings = as_dict(final.get("timings"))
    return Usage(
        input=timings.get("prompt_n", 0), output=timings.get("predicted_n", 0), cache_read=timings.get("cache_n", 0)
    )


# -------------------------------------------------------------------- the native server

_servers: dict[Path, Any] = {}
_loading = threading.Lock()
_running: dict[threading.Thread, threading.Event] = {}


def _completion(path: Path, body: bytes, on_abandon: Abandonment) -> Iterator[dict[str, Any]]:
    """The chunks of a chat completion, which native code makes in a thread of its own.

    Raises:
        RunError: when the model cannot be loaded.
        RuntimeError: when the request cannot be understood.
    """
    import pydantic_core

    chunks: SimpleQueue[bytes | Exception | None] = SimpleQueue()
    abandoned = threading.Event()

    def on_chunk(chunk: bytes) -> bool:
        chunks.put(chunk)
        # Must not raise; True ends the generation.
        return abandoned.is_set()

    def complete() -> None:
        try:
            _server(path).handle_chat_completions(body, on_chunk)
            chunks.put(None)
        except Exception as error:
            chunks.put(error)
        finally:
            del _running[threading.current_thread()]

    def abandon() -> None:
        abandoned.set()
        chunks.put(None)

    on_abandon.append(abandon)
    thread = threading.Thread(target=complete, name="op_jupyter local", daemon=True)
    _running[thread] = abandoned
    thread.start()
    try:
        while (chunk := chunks.get()) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            yield as_dict(pydantic_core.from_json(chunk))
    finally:
        abandoned.set()


def _server(path: Path) -> Any:
    """The server that has the model of `path`, loaded once and kept as long as the process.

    Raises:
        RunError: when the model cannot be loaded.
    """
    with _loading:
        if path not in _servers:
            xllamacpp = _import_xllamacpp()
            params = xllamacpp.CommonParams()
            params.model.path = str(path)
            params.n_ctx = CONTEXT
            params.n_batch = params.n_ubatch = BATCH
            params.n_parallel = 1
            params.cache_ram_mib = PROMPT_CACHE_MIB
            params.warmup = False
            params.verbosity = -1
            # It listens on a local address, which nobody uses: any free port, and a key that nobody knows.
            params.port = 0
            params.api_keys = [secrets.token_hex()]
            params.ui = False
            try:
                _servers[path] = xllamacpp.Server(params)
            except RuntimeError as error:
                raise RunError(
                    f"{path} cannot be loaded: it is damaged, or a model that the installed xllamacpp does not know",
                    kind="setup",
                ) from error
        return _servers[path]


def _import_xllamacpp() -> Any:
    """The module, whose OpenMP threads sleep while they wait for each other.

    By default they spin, which made a reply ten times slower as soon as something else used a core.
    """
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ["OMP_WAIT_POLICY"] = before or "passive"  # is read once, when the library is loaded
    try:
        return import_module("xllamacpp")
    finally:
        if before is None:
            del os.environ["OMP_WAIT_POLICY"]


def _shut_down() -> None:
    """End the native threads while there is an interpreter that they can call back: without one they crash."""
    running = dict(_running)
    for abandoned in running.values():
        abandoned.set()
    for thread in running:
        thread.join()
    _servers.clear()


atexit.register(_shut_down)


if __name__ == "__main__":
    if find_spec("filelock") is None:
        sys.exit("The embedded model needs more packages: pip install 'op_jupyter[local]'")
    try:
        print(download_model())
    except RunError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Interrupted: run the same command again to go on")
