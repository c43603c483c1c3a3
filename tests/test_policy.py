"""What a run was denied, no run under it gets, however it asks and wherever it goes on."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from op_jupyter import RunError, Runtime, agentic_function, function
from op_jupyter.messages import ToolResultMessage
from op_jupyter.providers import Request
from op_jupyter.testing import call, scripted
from op_jupyter.tools import gates, registry
from tests.conversation import Conversation, last_text, results, the_run


@pytest.fixture(autouse=True)
def three_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """`look`, which is harmless; `shell`, which is not; `wipe`, which is not safe without a person."""
    monkeypatch.setattr(registry, "_registry", {})
    monkeypatch.setattr(gates, "disabled", set())
    function(toolset=["all", "safe"])(look)
    function(toolset=["all"])(shell)
    function(toolset=["all"], unsafe_in=["headless"])(wipe)


def look() -> str:
    """Look."""
    return "looked"


def shell() -> str:
    """Run a command."""
    return "ran"


def wipe() -> str:
    """Wipe the disk."""
    return "wiped"


def names(request: Request) -> set[str]:
    return {tool.name for tool in request.tools}


# The ways from the body of a function to a nested run.


def directly(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    def ask() -> Any:
        return runtime.exec("inner", **arguments)

    return ask


def in_a_coroutine(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    async def ask() -> Any:
        return await runtime.aexec("inner", **arguments)

    return ask


def in_a_task(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    async def ask() -> Any:
        return await asyncio.create_task(runtime.aexec("inner", **arguments))

    return ask


def by_to_thread(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    async def ask() -> Any:
        return await asyncio.to_thread(lambda: runtime.exec("inner", **arguments))

    return ask


def in_a_copied_context(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    def ask() -> Any:
        return contextvars.copy_context().run(lambda: runtime.exec("inner", **arguments))

    return ask


def in_a_thread_with_the_context(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    def ask() -> None:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: runtime.exec("inner", **arguments),))
        thread.start()
        thread.join()

    return ask


def with_a_timeout(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    return function(timeout=30)(directly(runtime, arguments))


def in_an_agentic_function(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    @agentic_function
    def ask(runtime: Runtime) -> Any:
        return runtime.exec("inner", **arguments)

    return ask


def by_a_function_it_calls(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    inner = in_an_agentic_function(runtime, arguments)

    def ask() -> Any:
        return inner()

    return ask


def in_a_generator(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    def ask() -> Any:
        yield runtime.exec("inner", **arguments)

    return ask


def of_another_runtime(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    return directly(Runtime(), arguments)


def of_another_runtime_with_tools(runtime: Runtime, arguments: dict[str, Any]) -> Callable[..., Any]:
    return directly(Runtime(tools=[look, shell, wipe]), arguments)


WAYS = [
    directly,
    in_a_coroutine,
    in_a_task,
    by_to_thread,
    in_a_copied_context,
    in_a_thread_with_the_context,
    with_a_timeout,
    in_an_agentic_function,
    by_a_function_it_calls,
    in_a_generator,
    of_another_runtime,
    of_another_runtime_with_tools,
]

# What the nested run asks for.
DEMANDS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "by name": {"tools": [look, shell, wipe]},
    "preset": {"toolset": "all"},
    "allow": {"tools_allow": ["look", "shell", "wipe"]},
    "names and allow": {"tools": [look, shell, wipe], "tools_allow": ["look", "shell", "wipe"]},
    "no deny": {"tools": [look, shell, wipe], "tools_deny": []},
    "other channel": {"toolset": "all", "tools_source": "notebook"},
}


@pytest.mark.parametrize("demand", DEMANDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "policy",
    [
        {"tools_deny": ["shell", "wipe"]},
        {"tools_allow": ["look", "ask"]},
        {"tools_deny": ["shell"], "tools_source": "headless"},
    ],
    ids=["deny", "allow", "channel"],
)
def test_a_nested_run_never_gets_what_was_taken_away(
    policy: dict[str, Any], way: Callable[..., Callable[..., Any]], demand: str
) -> None:
    conversation = Conversation([call("ask")], [call("shell"), call("wipe"), call("look")], "inner done", "done")
    registry.register(registry.as_tool(way(conversation.runtime, DEMANDS[demand])))
    conversation.exec(tools=None, **policy)
    outer, inner, *_ = map(names, conversation.requests)
    assert outer == {"look", "ask"}
    assert inner - {"ask"} == {"look"}
    (child,) = conversation.run.children["call_1"]
    results = [message for message in child.messages if isinstance(message, ToolResultMessage)]
    assert [result.is_error for result in results] == [True, True, False]
    assert list(child.values.values()) == ["looked"]


def test_it_holds_at_every_depth_and_each_run_may_take_away_more() -> None:
    conversation = Conversation([call("first")], [call("second")], [call("third")], "3", "2", "1", "0")

    @function
    def first() -> str:
        return conversation.runtime.exec("1", tools=[look, shell, wipe, second], tools_deny=["shell"])

    def second() -> str:
        return conversation.runtime.exec("2", tools=[look, shell, wipe, third], tools_allow=["look", "third", "shell"])

    def third() -> str:
        return conversation.runtime.exec("3", tools=[look, shell, wipe])

    conversation.exec(tools=None, tools_source="headless")
    menus = list(map(names, conversation.requests))
    assert menus[:4] == [{"look", "shell", "first"}, {"look", "second"}, {"look", "third"}, {"look"}]
    assert menus[4:] == menus[2::-1], "and each has its own again when the inner one is over"


def test_what_a_nested_run_denies_itself_its_siblings_and_its_outer_run_still_have() -> None:
    def strict() -> str:
        return conversation.runtime.exec("a", tools_deny=["shell"], tools_source="headless")

    def free() -> str:
        return conversation.runtime.exec("b")

    conversation = Conversation([call("strict"), call("free")], "a", "b", "done")
    everything = [look, shell, wipe, strict, free]
    conversation.exec(tools=everything)
    all_names = {"look", "shell", "wipe", "strict", "free"}
    assert list(map(names, conversation.requests)) == [all_names, all_names - {"shell", "wipe"}, all_names, all_names]


def test_siblings_at_the_same_time_do_not_share_their_policies() -> None:
    def answer(request: Request) -> str:
        menus[last_text(request)] = names(request)
        both.wait(10)
        return "ok"

    async def ask() -> None:
        await asyncio.gather(
            conversation.runtime.aexec("no shell", tools_deny=["shell"]),
            conversation.runtime.aexec("no wipe", tools_deny=["wipe"]),
        )

    menus: dict[str, set[str]] = {}
    both = threading.Barrier(2)
    conversation = Conversation([call("ask")], answer, answer, "done")
    conversation.exec(tools=[look, shell, wipe, ask])
    assert menus == {"no shell": {"look", "wipe", "ask"}, "no wipe": {"look", "shell", "ask"}}
    assert names(conversation.requests[-1]) == {"look", "shell", "wipe", "ask"}


@pytest.mark.parametrize("failure", ["in the function", "in the nested run", "in the outer run"])
def test_after_a_failure_nothing_of_the_policy_is_left(failure: str) -> None:
    def ask() -> None:
        if failure == "in the function":
            raise RuntimeError("broken")
        runtime.exec("inner", tools_deny=["look"])

    gone = RuntimeError("gone")
    script: dict[str, list[Any]] = {
        "in the function": [[call("ask")], "done"],
        "in the nested run": [[call("ask")], gone, "done"],
        "in the outer run": [[call("ask")], "inner", gone],
    }
    menus: list[set[str]] = []
    runtime = Runtime(model=scripted([*script[failure], lambda request: menus.append(names(request)) or "ok"]))
    try:
        runtime.exec("go", tools=[look, ask], tools_deny=["shell"])
    except RunError:
        assert failure == "in the outer run"
    runtime.exec("again")
    assert menus == [{"look", "shell", "wipe"}]


def test_after_a_failed_nested_run_its_outer_run_still_holds_the_next_to_the_policy() -> None:
    def fail() -> None:
        conversation.runtime.exec("inner", tools=[look, shell], tools_deny=["look"])

    def ask() -> str:
        return conversation.runtime.exec("inner", tools=[look, shell, wipe])

    conversation = Conversation([call("fail"), call("ask")], RuntimeError("gone"), "inner", "done")
    conversation.exec(tools=[fail, ask, shell], tools_deny=["shell", "wipe"])
    assert list(map(names, conversation.requests)) == [{"fail", "ask"}, set(), {"look"}, {"fail", "ask"}]


def test_a_nested_run_may_deny_again_what_it_has_not_and_allow_what_it_never_had() -> None:
    def secret() -> None:
        """Not registered."""

    def ask() -> str:
        return conversation.runtime.exec("inner", tools_deny=["secret"], tools_allow=["look", "secret"])

    conversation = Conversation([call("ask")], "inner", "done")
    assert conversation.exec(tools=[look, secret, ask], tools_deny=["secret"]) == "done"
    assert conversation.run.values == {"call_1": "inner"}
    assert names(conversation.requests[1]) == {"look"}


def test_a_name_that_no_function_has_is_an_error_that_the_outer_model_reads() -> None:
    def ask() -> str:
        return conversation.runtime.exec("inner", tools_deny=["shel"])

    conversation = Conversation([call("ask")], "done")
    conversation.exec(tools=[ask])
    (result,) = [message for message in conversation.run.messages if isinstance(message, ToolResultMessage)]
    assert result.is_error and "'shel'" in result.text and "shell" in result.text
    assert "ask" not in conversation.run.children


def test_what_the_outer_run_did_not_name_a_nested_run_may_name_unless_it_was_denied() -> None:
    def ask() -> str:
        return conversation.runtime.exec("inner", tools=[shell, wipe])

    conversation = Conversation([call("ask")], "inner", "done")
    conversation.exec(tools=[look, ask], tools_deny=["wipe"])
    assert names(conversation.requests[1]) == {"shell"}


def test_a_bare_thread_gets_nothing_by_default_whatever_the_runtime() -> None:
    requests: list[Request] = []
    other = Runtime(model=scripted([lambda request: requests.append(request) or "ok"]))

    def ask() -> None:
        thread = threading.Thread(target=lambda: other.exec("inner"))
        thread.start()
        thread.join()

    conversation = Conversation([call("ask")], "done")
    conversation.exec(tools=[look, ask])
    assert names(requests[0]) == set()


def test_what_is_switched_off_during_a_run_no_later_nested_run_gets() -> None:
    def ask() -> str:
        gates.disabled.add("shell")
        return conversation.runtime.exec("inner")

    conversation = Conversation([call("ask")], "inner", "done")
    conversation.exec(tools=[shell, look, ask])
    assert names(conversation.requests[1]) == {"look", "ask"}


# -------------------------------------------------------------------- validators and picks


def asking(runtime: Runtime, got: list[list[str]]) -> Any:
    """A type that asks a model of its own whether a text will do."""

    def judge(text: str) -> str:
        runtime.exec("ok?")
        assert runtime.last_run is not None
        got.append(runtime.last_run.tools)
        return text

    return Annotated[str, AfterValidator(judge)]


@pytest.mark.parametrize("is_same", [True, False])
def test_a_run_that_the_validator_of_a_parameter_opens_is_a_child_and_gets_nothing_more(is_same: bool) -> None:
    runtime = Runtime(scripted([[call("take", x="a")], "yes", "ok"] if is_same else [[call("take", x="a")], "ok"]))
    got: list[list[str]] = []
    judge = runtime if is_same else Runtime(scripted(["yes"]))

    def take(x: Any) -> str:
        return "taken"

    take.__annotations__["x"] = asking(judge, got)
    function(take)
    assert runtime.exec("go", tools_deny=["shell"], tools_source="headless") == "ok"
    run = the_run(runtime)
    assert [result.text for result in results(run)] == ["taken"]
    assert got == [["look", "take"]]
    assert list(run.children) == ["call_1"]


@pytest.mark.parametrize("is_same", [True, False])
def test_a_run_that_a_validator_of_the_reply_opens_gets_nothing_more(is_same: bool) -> None:
    got: list[list[str]] = []
    runtime = Runtime(scripted(['"a"', "yes", "yes"] if is_same else ['"a"']))
    judge = runtime if is_same else Runtime(scripted(["yes", "yes"]))
    assert runtime.exec("go", response_format=asking(judge, got), tools_deny=["shell", "wipe"]) == "a"
    assert got and all(tools == ["look"] for tools in got)


@agentic_function(expose=False)
def pick(runtime: Runtime) -> list[str]:
    """Ask on."""
    runtime.exec("in")
    assert runtime.last_run is not None
    return runtime.last_run.tools


@pytest.mark.parametrize(
    ("arguments", "tools"),
    [
        ({"tools_deny": ["shell"], "tools_source": "headless"}, ["look"]),
        ({"tools": []}, []),
        ({"toolset": "safe"}, ["look"]),
    ],
)
def test_a_run_that_the_picked_function_opens_gets_no_more_than_the_run_that_picked(
    arguments: dict[str, Any], tools: list[str]
) -> None:
    for given in (None, [look, shell]):
        runtime = Runtime(scripted(['{"call": "pick"}', "ok"]), tools=given)
        assert runtime.exec("go", choices=[pick], **arguments) == tools


@pytest.mark.parametrize("arguments", [{"tools_deny": ["shell"]}, {"tools_allow": ["look", "outer"]}])
def test_what_the_outer_run_was_denied_is_no_choice_either(arguments: dict[str, Any]) -> None:
    @agentic_function
    def outer(runtime: Runtime) -> Any:
        """Decide."""
        return runtime.exec("in", choices=[shell], tools=[])

    runtime = Runtime(scripted([[call("outer")], '{"call": "shell"}', "ok"]))
    runtime.exec("go", **arguments)
    (result,) = results(the_run(runtime))
    assert result.text == "ValueError: choices: shell may not be called in this run, or not here"


def test_what_cannot_be_run_here_is_no_choice() -> None:
    @function(requires_env=["NEVER_SET"])
    def deploy() -> None: ...

    with pytest.raises(ValueError, match="choices: deploy may not be called in this run, or not here"):
        Runtime(scripted([])).exec("go", choices=[deploy])
