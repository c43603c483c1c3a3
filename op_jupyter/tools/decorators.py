"""`@function` and `@agentic_function`: a Python function becomes a tool.

Both only describe and register; the function itself, called from Python, stays what it is.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, Unpack, cast, overload

from op_jupyter.errors import RunError
from op_jupyter.tools.registry import TOOL_ATTRIBUTE, Decorated, ToolOptions, from_function, register

F = TypeVar("F", bound=Callable[..., Any])


def _no_runtime() -> Any:
    raise RunError("There is no Runtime to fill the parameter `runtime` with: import op_jupyter.runtime", kind="setup")


runtime_provider: Callable[[], Any] = _no_runtime
"""Gives the current run's Runtime, or outside of a run the default one. `op_jupyter.runtime` sets it."""


@overload
def function(function: F, /) -> F: ...
@overload
def function(**options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
def function(function: F | None = None, /, **options: Unpack[ToolOptions]) -> F | Callable[[F], F]:
    """Make a function a tool that models may call.

    The model sees its name, the first paragraph of its docstring, and its parameters with their types, defaults and
    descriptions (Google, NumPy or Sphinx style, or `Annotated[int, "how many"]`). What it goes on is what runs call by
    default: put it above other decorators.

    Args:
        function: the function to register, under its own name; an earlier tool of that name is replaced.
        **options: any of these:

            - `hidden`: names of parameters that the model does not see; each has a default.
            - `available_if`: a bool, or a function without arguments that is called now: whether this is a tool at all.
            - `expose`: `False` where only runs get it that name it, or a preset of its.
            - `toolset`: names of the presets that it belongs to.
            - `unsafe_in`: names of the channels whose runs do not get it, such as `"headless"`.
            - `requires_env`: names of environment variables without which no run gets it.
            - `check_fn`: called without arguments at the start of each run: whether it can be run now.
            - `defer`: `True` where the model sees its name and one line, and loads the rest with `tool_search`.
            - `requires_approval`: `True` where a person is asked before each call, with its arguments in view.
            - `timeout`: seconds after which the run goes on without the result; it runs in a worker thread.
            - `max_result_chars`: the length at which the result is cut for the model, its head and tail kept.

    Raises:
        TypeError: when a model could not call the function.
        ValueError: when providers would refuse the name of the function or of a parameter.

    Example:
        >>> @function
        ... def add(a: int, b: int = 1) -> int:
        ...     "Add two numbers."
        ...     return a + b
        >>> add(2)
        3
    """
    decorate = _decorator("@function", lambda f: f, options)
    return decorate if function is None else decorate(function)


@overload
def agentic_function(function: F, /) -> F: ...
@overload
def agentic_function(**options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
def agentic_function(function: F | None = None, /, **options: Unpack[ToolOptions]) -> F | Callable[[F], F]:
    """Make a function whose body calls `runtime.exec` a tool that models may call.

    A parameter named `runtime` is not shown to the model. When it is not passed, it is filled with the current run's
    Runtime, or outside of a run with the default one. All else, the options too, is as with `@function`.

    Raises:
        TypeError: when a model could not call the function.
        ValueError: when providers would refuse the name of the function or of a parameter.

    Example:
        >>> @agentic_function
        ... def summarize(text: str, runtime: Runtime) -> str:
        ...     "Summarize a text."
        ...     return runtime.exec(f"Summarize: {text}", tools=[])
    """
    decorate = _decorator("@agentic_function", _with_runtime, options, filled=("runtime",))
    return decorate if function is None else decorate(function)


def _decorator(
    name: str, wrap: Callable[[Any], Any], options: ToolOptions, filled: Iterable[str] = ()
) -> Callable[[F], F]:
    known = ToolOptions.__annotations__
    if unknown := [option for option in options if option not in known]:
        raise TypeError(f"{name} has no option {unknown[0]!r}: there are {', '.join(known)}")

    def decorate(function: F) -> F:
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"{name} goes on a function, not on {function!r}")
        decorated = wrap(function)
        tool = from_function(decorated, filled=filled, **options)
        again: ToolOptions = {**options, "available_if": True}
        mark = Decorated(decorated, tool, functools.partial(from_function, filled=filled, **again))
        try:
            setattr(decorated, TOOL_ATTRIBUTE, mark)
        except AttributeError:
            raise TypeError(f"{name} cannot mark {function!r}: pass it in tools=[...] as it is") from None
        register(tool)
        return cast("F", decorated)

    return decorate


def _with_runtime(function: Any) -> Any:
    """`function`, with the parameter `runtime` filled in when it is not passed."""
    parameters = inspect.signature(function).parameters
    if "runtime" not in parameters:
        return function
    runtime = parameters["runtime"]
    variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())
    if runtime.kind is runtime.POSITIONAL_ONLY or (variadic and runtime.kind is not runtime.KEYWORD_ONLY):
        raise TypeError(
            f"{getattr(function, '__name__', function)}: write the parameter runtime after a *, to be filled by name"
        )
    position = math.inf if runtime.kind is runtime.KEYWORD_ONLY else list(parameters).index("runtime")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "runtime" not in kwargs and len(args) <= position:
            kwargs["runtime"] = runtime_provider()
        return function(*args, **kwargs)

    if not inspect.iscoroutinefunction(function):
        return call

    @functools.wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    return call_async
