"""A function as it was written: the `def` below wrappers and partials, and its annotations as types.

Python's own `typing` and `inspect` alone are used here; what a type means to a model is said in `schema`.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin

# As values: no type checker can know the types that are put together here.
AnyAnnotated: Any = Annotated
AnyList: Any = list
AnyUnion: Any = Union


def as_written(function: Callable[..., Any]) -> Any:
    """The function whose `def` holds the annotations and the docstring: below partials, wrappers, methods, objects."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function):
        function = inspect.unwrap(type(function).__call__)
    return getattr(function, "__func__", function)


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, or of the class of an object that can be called.

    Raises:
        ValueError: when it is a lambda.
    """
    while isinstance(function, functools.partial):
        function = function.func
    name: str = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        raise ValueError("A lambda has no name that a model could call: write it with def")
    return name


def docstring_of(function: Callable[..., Any]) -> str:
    """The docstring of a function, or of an object that can be called; empty when there is none."""
    while isinstance(function, functools.partial):
        function = function.func
    text: str | None = as_written(function).__doc__
    if not text and not inspect.isroutine(function):
        text = type(function).__doc__
    return inspect.cleandoc(text or "")


def bound_by_partial(function: Callable[..., Any]) -> set[str]:
    """The parameters that a partial has set by name."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= function.keywords.keys()
        function = function.func
    return names


def is_unbound_method(function: Callable[..., Any]) -> bool:
    """Whether the function stands in a class body and was not taken from an object."""
    outer = as_written(function).__qualname__.rpartition(".")[0]
    first = next(iter(inspect.signature(function).parameters), None)
    return first in ("self", "cls") and bool(outer) and not outer.endswith("<locals>")


class Scope:
    """Where the annotations of a function find their names: its module, and the functions around it that still run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        written = as_written(function)
        self._name = name_of(function)
        self._globals: dict[str, Any] = getattr(written, "__globals__", {})
        self._locals: dict[str, Any] = {}
        scopes: set[str] = set()
        outer = written.__qualname__
        while outer := outer.rpartition(".<locals>.")[0]:
            scopes.add(outer)
        frame = inspect.currentframe() if scopes else None
        while frame is not None:
            if frame.f_globals is self._globals and frame.f_code.co_qualname in scopes:
                self._locals = {**frame.f_locals, **self._locals}
            frame = frame.f_back

    def hint(self, parameter: inspect.Parameter) -> Any:
        """The resolved annotation; without one, `Any`.

        Raises:
            TypeError: when a name in it is not defined.
        """
        if parameter.annotation is parameter.empty:
            return Any
        holder = types.SimpleNamespace(__annotations__={"hint": parameter.annotation})
        try:
            hints = typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)
        except Exception as error:
            raise TypeError(
                f"{self._name}: the annotation {parameter.annotation!r} of {parameter.name!r} cannot be resolved "
                f"({error}): define or import it before the function"
            ) from None
        return without_iterators(hints["hint"])


def without_iterators(hint: Any) -> Any:
    """`Iterable[X]` as `list[X]`: pydantic would hand over a one-time iterator, and check it only when it is read."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin in (collections.abc.Iterable, collections.abc.Iterator, collections.abc.Generator):
        return AnyList[without_iterators(arguments[0])] if arguments else list
    if origin is Annotated:
        return AnyAnnotated[(without_iterators(arguments[0]), *hint.__metadata__)]
    listed = tuple(map(without_iterators, arguments))
    if listed == arguments:
        return hint
    return AnyUnion[listed] if origin is types.UnionType else origin[listed]
