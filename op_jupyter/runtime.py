"""`Runtime.exec`: run the loop, from a script, a cell, a function or a thread, and keep its record.

What the arguments mean is in `arguments`, how a round goes in `agent_loop`; nothing here knows of notebooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, cast

from op_jupyter.agent_loop import _run_loop
from op_jupyter.arguments import Content, ExecArguments, GetQueued, context_for
from op_jupyter.context import AgentContext, Capture, OnApproval, _current_run, runs_under_way
from op_jupyter.control import RunControl
from op_jupyter.emit import Emitter, OnEvent, events_written_to
from op_jupyter.errors import RunAborted, RunError
from op_jupyter.events import AgentEventAgentStart, AgentEventSteering
from op_jupyter.messages import Message, UserMessage
from op_jupyter.providers import Connection, Model, ToolChoice
from op_jupyter.record import Run, find_run
from op_jupyter.redact import redact
from op_jupyter.threads import in_thread, on_background_loop
from op_jupyter.tools import decorators


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
        self.connection = Connection(client, api_key, base_url, timeout, max_retries)
        self.last_run: Run | None = None
        self.capture: Capture = lambda emit_output: contextlib.nullcontext()
        self._lock = threading.Lock()
        self._root: _RootRun | None = None

    def exec(
        self,
        content: Content,
        *,
        system: str | None = None,
        model: str | Model | None = None,
        options: dict[str, Any] | None = None,
        tools: Sequence[Any] | None = None,
        tool_choice: ToolChoice = "auto",
        reset_tool_choice: bool = True,
        parallel_tool_calls: bool | None = None,
        max_iterations: int | None = None,
        history: Sequence[Message] | None = None,
        get_steering_messages: GetQueued | None = None,
        get_follow_up_messages: GetQueued | None = None,
        on_event: OnEvent | None = None,
        on_approval: OnApproval | None = None,
    ) -> str:
        """Ask the model, let it call functions for as long as it picks any, and return its final text.

        Inside a function that a run has called, this is a nested run: it is offered what the outer run is, unless
        `tools` names its own, and is asked of the outer run's model, unless it or this Runtime names one.

        Args:
            content: the question: a text, or a list of texts and blocks.
            system, model, options: as in `Runtime`, for this call.
            tools: exactly the functions on the menu: decorated or plain ones, `{"spec": …, "execute": f}`, or objects
                with `.spec` and `.execute`. `[]` for none.
            tool_choice: `"auto"`, `"required"`, `"none"`, or `{"type": "function", "name": "X"}`. A forced choice
                holds until the model has made it, with `reset_tool_choice=False` in every round.
            parallel_tool_calls: `False` for one call a round.
            max_iterations: how often the model is asked at the most: 1 to 50.
            history: the messages to go on from, such as `runtime.last_run.messages`.
            get_steering_messages, get_follow_up_messages: asked for more messages as the loop goes, and at its end.
            on_event: called with every event, in the thread that it happens in.
            on_approval: called with a `ToolCall` and its `AgentTool` where that asks for approval; returns whether it
                may run. By default the outer run's; else a notebook asks the person, and elsewhere nothing is allowed.

        Raises:
            RunError: when there is no model to ask, the provider fails, or a run of this Runtime is under way.
            RunAborted: after `abort()`.
            KeyboardInterrupt: after an interrupt of the kernel.
            TypeError: when an entry of `tools` or `content` is of no kind that is known.
            ValueError: when two tools have one name, or there is nothing to ask.
        """
        if on_background_loop():
            raise RunError(
                "exec would block the event loop that coroutine functions run on: use `await runtime.aexec(...)`",
                kind="setup",
            )
        context = context_for(
            self,
            content,
            {
                "system": system,
                "model": model,
                "options": options,
                "tools": tools,
                "tool_choice": tool_choice,
                "reset_tool_choice": reset_tool_choice,
                "parallel_tool_calls": parallel_tool_calls,
                "max_iterations": max_iterations,
                "history": history,
                "get_steering_messages": get_steering_messages,
                "get_follow_up_messages": get_follow_up_messages,
                "on_approval": on_approval,
            },
        )
        return self._exec(context, _new_control(), on_event)

    async def aexec(
        self, content: Content, *, on_event: OnEvent | None = None, **arguments: Unpack[ExecArguments]
    ) -> str:
        """`exec` from async code: the run, and its sync functions, are in a worker thread.

        When the task that waits is cancelled, the run is aborted, and has ended before the cancellation goes on.
        """
        context, control = context_for(self, content, arguments), _new_control()
        # A thread of its own: in a pool, nested runs could wait for threads that wait for them.
        thread = in_thread(lambda: self._exec(context, control, on_event), "op_jupyter aexec")
        control.keep(thread)
        running = asyncio.wrap_future(thread)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            control.abort_subtree()
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
            RunError: when no run is under way.
        """
        self._send(UserMessage(redact(text), "steering"), RunControl.steer)

    def follow_up(self, text: str) -> None:
        """Queue a message that the run goes on with when it would end, from any thread.

        Raises:
            RunError: when no run is under way.
        """
        self._send(UserMessage(redact(text), "follow_up"), RunControl.follow_up)

    def approve(self, run_id: str, call_id: str, allowed: bool) -> bool:
        """Answer for a person whether a call may run, from any thread; `False` when no such call waits to hear it.

        Args:
            run_id, call_id: the run, nested ones included, and the call: an `AgentEventApproval` names them.
            allowed: whether it may run.
        """
        root = self._root
        return root is not None and root.control.approve(run_id, call_id, allowed)

    def abort(self) -> None:
        """End the run under way, from any thread; without one, do nothing. Its `exec` raises `RunAborted`."""
        root = self._root
        if root:
            root.control.abort()

    def _send(self, message: UserMessage, queue: Callable[[RunControl, UserMessage], bool]) -> None:
        root = self._root
        if root is None:
            raise RunError("No run of this Runtime is under way that could take a message.", kind="setup")

        def tell(state: Literal["queued", "undelivered"]) -> None:
            event = AgentEventSteering(run_id=root.emit.run.run_id, message=message, state=state)
            root.control.shielded(lambda: root.emit(event))

        # Told before it is queued: the loop may deliver it at once.
        tell("queued")
        if not queue(root.control, message):
            tell("undelivered")

    # ------------------------------------------------------------ one exec

    def _exec(self, context: AgentContext, control: RunControl, on_event: OnEvent | None) -> str:
        parent = _current_run.get()
        if parent is not None:
            emit = cast(Emitter, parent.emit)
            nested = emit.with_subscriber(on_event) if on_event else emit
            return control.shielded(lambda: self._run(context, control, nested, parent.context.run_id))
        with control.owning_interrupts(), self._root_run(context, control, on_event) as emit:
            answer = self._run(context, control, emit, None)
        # One that came when the run was all but over must not let the next cell run.
        if control.aborted == "interrupt":
            raise KeyboardInterrupt
        return answer

    @contextlib.contextmanager
    def _root_run(self, context: AgentContext, control: RunControl, on_event: OnEvent | None) -> Iterator[Emitter]:
        with contextlib.ExitStack() as stack:
            subscribers = [on_event] if on_event else []
            if path := os.environ.get("OP_JUPYTER_EVENTS"):
                subscribers.append(stack.enter_context(events_written_to(path)))
            emit = Emitter(Run(run_id=context.run_id), subscribers, threading.RLock(), context.connection.api_key)
            with self._lock:
                if self._root is not None:
                    raise RunError(
                        "A run of this Runtime is under way: wait for its end, or use another Runtime.", kind="setup"
                    )
                self._root = _RootRun(control, emit)
            runs_under_way.add(context.run_id)
            try:
                yield emit
            finally:
                runs_under_way.discard(context.run_id)
                self._root = None

    def _run(self, context: AgentContext, control: RunControl, emit: Emitter, parent_run_id: str | None) -> str:
        emit(
            AgentEventAgentStart(
                **context.where,
                parent_run_id=parent_run_id,
                model=str(context.model),
                tools=list(context.tools),
                history=list(context.messages),
            )
        )
        run = find_run(emit.run, context.run_id)
        assert run is not None
        run.values = context.values
        self.last_run = run
        try:
            _run_loop(context, control, emit)
        finally:
            self.last_run = run
        if run.stop_reason == "aborted":
            if control.aborted == "interrupt":
                raise KeyboardInterrupt
            raise RunAborted(run=run)
        if run.stop_reason == "error":
            raise RunError(run.error or "The run failed.", kind=run.error_kind or "provider", run=run)
        return run.text


@dataclass(frozen=True, slots=True)
class _RootRun:
    control: RunControl
    emit: Emitter


def _new_control() -> RunControl:
    parent = _current_run.get()
    return RunControl(parent.control if parent else None)


# -------------------------------------------------------------------- the Runtime of whoever names none

_default_runtime: Runtime | None = None


def default_runtime() -> Runtime:
    """The Runtime outside of any run: in a notebook the notebook's, else one with no settings."""
    global _default_runtime
    if _default_runtime is None:
        _default_runtime = Runtime()
    return _default_runtime


def set_default_runtime(runtime: Runtime) -> None:
    """Let `runtime` be the one that functions get outside of a run."""
    global _default_runtime
    _default_runtime = runtime


def current_runtime() -> Runtime:
    """The Runtime of the run that the caller's code runs under, else the default one."""
    current = _current_run.get()
    runtime: Runtime = current.context.runtime if current else default_runtime()
    return runtime


decorators.runtime_provider = current_runtime
