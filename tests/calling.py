"""A function with a parameter of any type, called in a whole run; and types to declare it with."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypeAliasType, TypedDict

from op_jupyter import Runtime
from op_jupyter.messages import ToolResultMessage
from op_jupyter.testing import call, scripted
from op_jupyter.tools.registry import as_tool

T = TypeVar("T")
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | int | None")


class Query(BaseModel):
    text: str
    tags: list[str] = Field(default_factory=list)
    limit: int | None = 3


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Person(BaseModel):
    name: str
    employer: Company | None = None


class Company(BaseModel):
    staff: list[Person] = []


class Box(BaseModel, Generic[T]):
    value: T


class Aliased(BaseModel):
    from_: int = Field(alias="from")


class Words(RootModel[list[str]]):
    pass


@dataclasses.dataclass
class Node:
    value: int
    next: Node | None = None


class Options(TypedDict, total=False):
    loud: bool
    tags: list[str]


class Pair(NamedTuple):
    left: int
    right: int = 2


class Colour(enum.Enum):
    RED = "red"
    NUMBER = 7
    NOTHING = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    FAST = "fast"


def taking(annotation: Any, *defaults: Any) -> Any:
    """A function whose only parameter `x` has this annotation, and that keeps what it is given in `got`."""
    got: list[Any] = []

    def take(x: Any) -> None:
        got.append(x)

    take.__annotations__["x"] = annotation
    take.__defaults__ = defaults
    take.got = got  # type: ignore[attr-defined]
    return take


def run(tool: Any, *sent: dict[str, Any]) -> list[ToolResultMessage]:
    """The results of one call of `tool` for each of these arguments."""
    name = as_tool(tool).name
    runtime = Runtime(scripted([[call(name, **arguments) for arguments in sent], "ok"]))
    runtime.exec("go", tools=[tool])
    assert runtime.last_run is not None
    return [message for message in runtime.last_run.messages if isinstance(message, ToolResultMessage)]


def received(annotation: Any, sent: Any) -> Any:
    """What a function with this annotation is given when the model sends `sent` for it."""
    tool = taking(annotation)
    (result,) = run(tool, {"x": sent})
    assert not result.is_error, result.text
    return tool.got[0]
