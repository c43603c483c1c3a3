"""`Runtime.exec`: run the loop, from a script, a cell, a function or a thread, and keep its record.

What the arguments mean is in `arguments`, how a round goes in `agent_loop`; nothing here knows of notebooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Unpack, cast, overload

from op_jupyter.agent_loop import _run_loop
from op_jupyter.arguments import Content, ExecArguments, GetQueued, context_for
from op_jupyter.context import AgentContext, Capture, OnApproval, _current_run, bounded_by, runs_under_way
from op_jupyter.control import Aborted, RunControl
from op_jupyter.decision import Choices, Expected, expected_reply
from op_jupyter.emit import Emitter, OnEvent, events_written_to
from op_jupyter.errors import RunAborted, RunError
from op_jupyter.events import AgentEventAgentStart, AgentEventSteering
from op_jupyter.messages import Message, UserMessage
from op_jupyter.providers import Connection, Model, ToolChoice
from op_jupyter.record import Run, find_run
from op_jupyter.redact import known_keys, redact
from op_jupyter.threads import on_background_loop

T = TypeVar("T")


class Runtime:
    """A model and its settings, ready to be asked.

    Args:
        model: `"provider:model"`, or a `Model` such as `testing.scripted([...])`; by default what the environment has.
        system: the system prompt.
        tools: the functions on the menu where `exec` names none; by default all that are registered.
        options: settings passed to the provider as they are (`temperature`, `max_tokens`, …).
        client: the SDK's own client object, instead of a key and an address.
        api_key: the key; by default the provider's own environment variable.
        base_url: the address of a compatible server.
        timeout: seconds of silence after which a request has failed.
        max_retries: how often a request that failed before any output is sent again.

    Raises:
        ValueError: when `timeout` is not above 0, or `max_retries` is below 0.

    Example:
        >>> Runtime("openai:gpt-5-mini").exec("How many rows has the table?", tools=[count_rows])
    """

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
        options: dict[str, Any] | None = None,
        client: Any = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 600,
        max_retries: int = 2,
    ) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout must be a number of seconds above 0, not {timeout!r}")
        if max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {max_retries!r}")
        self.model = model
        self.system = system
        self.tools = tools
        self.options = options or {}
        # A day, where it is for ever: sockets take no more.
        self.connection = Connection(client, api_key, base_url, min(timeout, 86_400), max_retries)
        self.last_run: Run | None = None
        self.capture: Capture = lambda emit_output: contextlib.nullcontext()
        self._lock = threading.Lock()
        self._root: _RootRun | None = None

    @overload
    def exec(self, content: Content, **arguments: Unpack[ExecArguments]) -> str: ...
    @overload
    def exec(self, content: Content, *, choices: Choices, **arguments: Unpack[ExecArguments]) -> Any: ...
    @overload
    def exec(self, content: Content, *, response_format: type[T], **arguments: Unpack[ExecArguments]) -> T: ...
    @overload
    def exec(self, content: Content, *, response_format: Any, **arguments: Unpack[ExecArguments]) -> Any: ...
    def exec(
        self,
        content: Content,
        *,
        system: str | None = None,
        model: str | Model | None = None,
        options: dict[str, Any] | None = None,
        tools: Sequence[Any] | None = None,
        toolset: str | None = None,
        tools_source: str | None = None,
        tools_allow: Iterable[str] | None = None,
        tools_deny: Iterable[str] | None = None,
        tool_choice: ToolChoice = "auto",
        reset_tool_choice: bool = True,
        parallel_tool_calls: bool | None = None,
        max_iterations: int | None = None,
        choices: Choices | None = None,
        response_format: Any = None,
        history: Sequence[Message] | None = None,
        get_steering_messages: GetQueued | None = None,
        get_follow_up_messages: GetQueued | None = None,
        on_event: OnEvent | None = None,
        on_approval: OnApproval | None = None,
    ) -> Any:
        """Ask the model, let it call functions for as long as it picks any, and return its final text.

        Inside a function that a run has called, this is a nested run: it is offered what the outer run is, unless
        `tools` names its own, and is asked of the outer run's model, unless it or this Runtime names one.

        Args:
            content: the question: a text, or a list of texts and blocks.
            system, model, options: as in `Runtime`, for this call.
            tools: exactly the functions on the menu: decorated or plain ones, `{"spec": …, "execute": f}`, or objects
                with `.spec` and `.execute`. `[]` for none.
            toolset: instead of `tools`, the name of a preset, or `"none"`.
            tools_source: the channel that the call comes from; functions that are `unsafe_in` it are hidden.
            tools_allow, tools_deny: names of functions: none but the former, and not the latter, also in nested runs.
            tool_choice: `"auto"`, `"required"`, `"none"`, or `{"type": "function", "name": "X"}`. A forced choice
                holds until the model has made it, with `reset_tool_choice=False` in every round.
            parallel_tool_calls: `False` for one call a round.
            max_iterations: how often the model is asked at the most: 1 to 50.
            choices: what the last reply has to pick from: a dict of names and handlers, or a list of functions, names,
                `(function or name, "description")` and `(name, "description", schema)`.
            response_format: the type of the last reply, as pydantic understands it, or a JSON Schema.
            history: the messages to go on from, such as `runtime.last_run.messages`.
            get_steering_messages, get_follow_up_messages: asked for more messages as the loop goes, and at its end.
            on_event: called with every event, in the thread that it happens in, but for what is printed: soon after.
            on_approval: called with a `ToolCall` and its `AgentTool` where that asks for approval; says whether it may
                run, or `"always"`: later ones, too. By default the outer run's or the notebook's; else all is refused.

        Returns:
            The text of the last reply; with `choices` what the handler returned that was picked, or the value or name
            that stood in its place; with `response_format` data of that type.

        Raises:
            OutputError: when the last reply does not fit `response_format`, `DecisionError` when it is no valid pick,
                also after the model was told why.
            RunError: when there is no model to ask, the provider fails, or a run of this Runtime is under way.
            RunAborted: after `abort()`.
            KeyboardInterrupt: after an interrupt of the kernel.
            TypeError: when an entry of `tools` or `content` is of no kind that is known.
            ValueError: when two tools have one name, a name is that of no tool, or there is nothing to ask.
        """
        if on_background_loop():
            raise RunError(
                "exec would block the event loop that coroutine functions run on: use `await runtime.aexec(...)`",
                kind="setup",
            )
        arguments: ExecArguments = {
            "system": system,
            "model": model,
            "options": options,
            "tools": tools,
            "toolset": toolset,
            "tools_source": tools_source,
            "tools_allow": tools_allow,
            "tools_deny": tools_deny,
            "tool_choice": tool_choice,
            "reset_tool_choice": reset_tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
            "max_iterations": max_iterations,
            "history": history,
            "get_steering_messages": get_steering_messages,
            "get_follow_up_messages": get_follow_up_messages,
            "on_event": on_event,
            "on_approval": on_approval,
        }
        expected = expected_reply(choices, response_format)
        context = context_for(self, content, arguments, expected)
        return self._exec(context, _new_control(), on_event, expected)

    @overload
    async def aexec(self, content: Content, **arguments: Unpack[ExecArguments]) -> str: ...
    @overload
    async def aexec(self, content: Content, *, choices: Choices, **arguments: Unpack[ExecArguments]) -> Any: ...
    @overload
    async def aexec(self, content: Content, *, response_format: type[T], **arguments: Unpack[ExecArguments]) -> T: ...
    @overload
    async def aexec(self, content: Content, *, response_format: Any, **arguments: Unpack[ExecArguments]) -> Any: ...
    async def aexec(
        self,
        content: Content,
        *,
        choices: Choices | None = None,
        response_format: Any = None,
        **arguments: Unpack[ExecArguments],
    ) -> Any:
        """`exec` from async code: the run, and its sync functions, are in a worker thread.

        When the task that waits is cancelled, the run is aborted, and has ended before the cancellation goes on.
        """
        if unknown := arguments.keys() - ExecArguments.__annotations__.keys():
            raise TypeError(f"aexec takes no argument {unknown.pop()!r}")
        expected = expected_reply(choices, response_format)
        context, control = context_for(self, content, arguments, expected), _new_control()
        on_event = arguments.get("on_event")
        running = asyncio.wrap_future(control.start(lambda: self._exec(context, control, on_event, expected)))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            control.abort_subtree()
            while not running.done():
                with contextlib.suppress(asyncio.CancelledError):  # cancelled once more, as by a timeout outside
                    await asyncio.wait([running])
            running.exception()  # looked at here, or asyncio writes its traceback to stderr later
            raise

    @property
    def under_way(self) -> Emitter | None:
        """Where the events of the run under way go, with its record; `None` when there is no run."""
        return self._root.emit if self._root else None

    def steer(self, text: str) -> None:
        """Put a message into the run under way, from any thread: the next request holds it.

        Raises:
            RunError: when no run is under way, ValueError when the text is empty.
        """
        self._send(text, "steering")

    def follow_up(self, text: str) -> None:
        """Queue a message that the run goes on with when it would end, from any thread.

        Raises:
            RunError: when no run is under way, ValueError when the text is empty.
        """
        self._send(text, "follow_up")

    def abort(self) -> None:
        """End the run under way, from any thread; without one, do nothing. Its `exec` raises `RunAborted`."""
        if root := self._root:
            root.control.abort()

    def _send(self, text: str, source: Literal["steering", "follow_up"]) -> None:
        if not isinstance(text, str):
            raise TypeError(f"A message is a text, not {type(text).__name__}")
        if not text.strip():
            raise ValueError("There is nothing to send: the text is empty.")
        message = UserMessage(redact(text), source)
        root = self._root
        if root is None:
            raise RunError("No run of this Runtime is under way that could take a message.", kind="setup")

        def tell(state: Literal["queued", "undelivered"]) -> None:
            root.emit(AgentEventSteering(run_id=root.emit.run.run_id, message=message, state=state))

        def send() -> None:
            # Told before it is queued: the loop may deliver it at once.
            tell("queued")
            queue = root.control.steer if source == "steering" else root.control.follow_up
            if not queue(message):
                tell("undelivered")

        root.control.shielded(send)

    # ------------------------------------------------------------ one exec

    def _exec(
        self, context: AgentContext, control: RunControl, on_event: OnEvent | None, expected: Expected | None
    ) -> Any:
        parent = _current_run.get()
        on_event = control.leavable(on_event) if on_event else None
        if parent is not None:
            emit = cast(Emitter, parent.emit)
            emit.keys.update(known_keys(context.connection.api_key))
            nested = emit.with_subscriber(on_event) if on_event else emit
            run = control.shielded(lambda: self._run(context, control, nested, parent.context.run_id))
        else:
            with control.owning_interrupts(), self._root_run(context, control, on_event) as emit:
                run = self._run(context, control, emit, None)
            # One that came when the run was all but over must not let the next cell run.
            if control.aborted == "interrupt":
                raise KeyboardInterrupt
        try:
            with bounded_by(context):
                return expected.value_of(run, control.run_coroutine) if expected else run.text
        except Aborted:
            raise (KeyboardInterrupt() if control.aborted == "interrupt" else RunAborted(run=run)) from None
        finally:
            if parent is None:
                self.last_run = run  # the function that was picked may have asked too

    @contextlib.contextmanager
    def _root_run(self, context: AgentContext, control: RunControl, on_event: OnEvent | None) -> Iterator[Emitter]:
        with contextlib.ExitStack() as stack:
            subscribers: list[OnEvent] = []
            if path := os.environ.get("OP_JUPYTER_EVENTS"):
                subscribers.append(stack.enter_context(events_written_to(path)))
            if on_event:
                subscribers.append(on_event)  # behind the file: what it steers is an event after this one
            emit = Emitter(Run(run_id=context.run_id), subscribers, threading.RLock())
            emit.keys.update(known_keys(context.connection.api_key))
            with self._lock:
                if self._root is not None:
                    reason = "A run of this Runtime is under way: wait for its end, or use another Runtime."
                    raise RunError(reason, kind="setup")
                self._root = _RootRun(control, emit)
            runs_under_way.add(context.run_id)
            try:
                yield emit
            finally:
                runs_under_way.discard(context.run_id)
                self._root = None

    def _run(self, context: AgentContext, control: RunControl, emit: Emitter, parent_run_id: str | None) -> Run:
        model, tools, history = str(context.model), list(context.tools), list(context.messages)
        emit(
            AgentEventAgentStart(
                **context.where, parent_run_id=parent_run_id, model=model, tools=tools, history=history
            )
        )
        run = find_run(emit.run, context.run_id)
        if run is None:
            raise RunError("The run that this one would be part of is over.", kind="setup")
        run.values = context.values
        self._note(run, emit)
        try:
            _run_loop(context, control, emit)
        finally:
            self._note(run, emit)
        if run.stop_reason == "aborted":
            raise KeyboardInterrupt if control.aborted == "interrupt" else RunAborted(run=run)
        if run.stop_reason == "error":
            raise RunError(run.error or "The run failed.", kind=run.error_kind or "provider", run=run)
        return run

    def _note(self, run: Run, emit: Emitter) -> None:
        with emit.lock:  # a function that was left may go on, also after the end
            if run is emit.run or emit.run.ended is None:
                self.last_run = run


@dataclass(frozen=True, slots=True)
class _RootRun:
    control: RunControl
    emit: Emitter


def _new_control() -> RunControl:
    parent = _current_run.get()
    return RunControl(parent.control if parent else None)
