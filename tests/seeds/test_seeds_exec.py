"""The source documents, first part: the loop in one sentence, and its entry point `runtime.exec`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from op_jupyter import Runtime, agent_loop, agentic_function, function
from op_jupyter import runtime as runtime_module
from op_jupyter.context import _current_tools
from op_jupyter.messages import AssistantMessage, TextContent, ToolCall
from op_jupyter.providers.scripted import Reply
from op_jupyter.testing import call
from op_jupyter.tools import gates, registry
from tests.conversation import offered, playing, results, the_run
from tests.seeds.conftest import Spy

SPEC = {
    "name": "lookup",
    "description": "Look up a word.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


def lookup(word: str) -> str:
    """Look up a word."""
    return f"{word}: a word"


def forever() -> str:
    """Go on."""
    return "on"


# -------------------------------------------------------------------- in one sentence


def test_on_every_round_the_model_chooses_to_pick_a_function_or_to_answer_and_finish() -> None:
    model, requests = playing([call("lookup", word="a")], [call("lookup", word="b")], "Both are words.")
    assert Runtime(model).exec("a, b?", tools=[lookup]) == "Both are words."
    assert [offered(request) for request in requests] == [["lookup"]] * 3


def test_the_model_is_given_agentic_functions_and_tool_dicts() -> None:
    @agentic_function
    def research(topic: str, runtime: Runtime) -> str:
        """Find out about a topic."""
        return topic

    model, requests = playing("ok")
    Runtime(model).exec("go", tools=[research, {"spec": SPEC, "execute": lookup}])
    assert [(tool.name, tool.description) for tool in requests[0].tools] == [
        ("research", "Find out about a topic."),
        ("lookup", "Look up a word."),
    ]


def test_each_round_returns_one_assistant_message() -> None:
    model, _ = playing([call("lookup", word="a"), call("lookup", word="b")], "Done.")
    runtime = Runtime(model)
    runtime.exec("go", tools=[lookup])
    said = [message for message in the_run(runtime).messages if isinstance(message, AssistantMessage)]
    assert len(said) == the_run(runtime).rounds == 2


def test_a_message_with_a_toolcall_is_executed_and_fed_back_and_the_model_picks_again() -> None:
    model, requests = playing(["Let me see.", call("lookup", word="a")], "A word.")
    runtime = Runtime(model)
    assert runtime.exec("a?", tools=[lookup]) == "A word."
    picked = requests[1].messages[1]
    assert isinstance(picked, AssistantMessage) and isinstance(picked.content[1], ToolCall)
    assert requests[1].messages[2] == results(the_run(runtime))[0]


def test_a_message_of_text_only_is_returned_as_the_final_reply() -> None:
    model, requests = playing("A word.", "never asked")
    assert Runtime(model).exec("a?", tools=[lookup]) == "A word."
    assert len(requests) == 1


def test_the_loop_runs_in_agent_loop_run_loop(spy: Spy) -> None:
    assert agent_loop._run_loop.__module__ == "op_jupyter.agent_loop"
    run_loop = spy(runtime_module, "_run_loop")
    model, requests = playing([call("lookup", word="a")], "ok")
    Runtime(model).exec("go", tools=[lookup])
    assert len(run_loop.returned) == 1 and len(requests) == 2


# -------------------------------------------------------------------- the framework around it


def test_function_and_agentic_function_fill_one_shared_registry() -> None:
    function(lookup)
    agentic_function(forever)
    assert [tool.name for tool in registry.registered()] == ["lookup", "forever"]


@pytest.mark.parametrize(
    ("layer", "gate", "arguments"),
    [
        ("1", {"available_if": False}, {}),
        ("2", {"expose": False}, {}),
        ("2b", {"toolset": ["words"]}, {"toolset": "numbers"}),
        ("3", {"unsafe_in": ["headless"]}, {"tools_source": "headless"}),
        ("4 environment", {"requires_env": ["NO_SUCH_VARIABLE"]}, {}),
        ("4 check", {"check_fn": lambda: False}, {}),
        ("5 denied", {}, {"tools_deny": ["lookup"]}),
        ("5 not allowed", {}, {"tools_allow": ["add"]}),
        ("5 disabled", {}, {}),
        ("6", {"defer": True}, {}),
    ],
)
def test_six_layers_of_gates_decide_what_the_model_is_offered(
    layer: str, gate: dict[str, Any], arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    @function(toolset=["numbers"])
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    function(**gate)(lookup)
    monkeypatch.setattr(gates, "disabled", {"lookup"} if layer == "5 disabled" else set())
    model, requests = playing("ok")
    Runtime(model).exec("go", **arguments)
    assert "add" in offered(requests[0]) and "lookup" not in offered(requests[0])


def test_a_deferred_function_is_known_by_name_and_loaded_before_it_is_called() -> None:
    function(defer=True)(lookup)
    model, requests = playing([call("tool_search", query="lookup")], [call("lookup", word="a")], "A word.")
    runtime = Runtime(model)
    assert runtime.exec("a?") == "A word."
    assert offered(requests[0]) == ["tool_search"] and "lookup" in requests[0].tools[0].description
    assert "lookup" in offered(requests[1])
    assert results(the_run(runtime))[1].text == "a: a word"


# -------------------------------------------------------------------- runtime.exec


def test_an_agentic_function_calls_runtime_exec_with_a_menu_a_choice_and_a_cap() -> None:
    named: Any = {"type": "function", "name": "lookup"}

    @agentic_function
    def research(topic: str, runtime: Runtime) -> str:
        """Find out about a topic."""
        return runtime.exec(f"About {topic}", tools=[lookup], tool_choice=named, max_iterations=1)

    model, requests = playing(["First,", call("lookup", word="rain")])
    runtime = Runtime(model)
    assert research("rain", runtime=runtime) == "First,"
    assert (offered(requests[0]), requests[0].tool_choice) == (["lookup"], named)
    assert the_run(runtime).hit_cap


@pytest.mark.parametrize("kind", ["agentic_function", "dict", "object"])
def test_an_entry_of_tools_is_an_agentic_function_a_dict_or_an_object_with_spec_and_execute(kind: str) -> None:
    entry = {
        "agentic_function": agentic_function(lookup),
        "dict": {"spec": SPEC, "execute": lookup},
        "object": SimpleNamespace(spec=SPEC, execute=lookup),
    }[kind]
    model, requests = playing([call("lookup", word="a")], "ok")
    runtime = Runtime(model)
    runtime.exec("a?", tools=[entry])
    assert offered(requests[0]) == ["lookup"]
    assert results(the_run(runtime))[0].text == "a: a word"


def test_with_neither_tools_nor_toolset_the_model_is_offered_the_full_registry() -> None:
    function(lookup)
    agentic_function(forever)
    model, requests = playing("ok")
    Runtime(model).exec("go")
    assert offered(requests[0]) == ["lookup", "forever"]


def test_a_function_uses_what_is_registered_without_declaring_it() -> None:
    function(lookup)

    @agentic_function
    def research(topic: str, runtime: Runtime) -> str:
        """Find out about a topic."""
        return runtime.exec(f"About {topic}")

    model, _ = playing([call("lookup", word="rain")], "It is a word.")
    runtime = Runtime(model)
    assert research("rain", runtime=runtime) == "It is a word."
    assert results(the_run(runtime))[0].text == "rain: a word"


@pytest.mark.parametrize("arguments", [{"toolset": "none"}, {"tools": []}], ids=["toolset", "tools"])
def test_toolset_none_or_an_empty_list_leaves_a_model_that_can_only_emit_text(arguments: dict[str, Any]) -> None:
    function(lookup)
    model, requests = playing([call("lookup", word="a")], "By thinking alone.")
    runtime = Runtime(model)
    assert runtime.exec("a?", **arguments) == "By thinking alone."
    assert requests[0].tools == [] and results(the_run(runtime))[0].is_error and not the_run(runtime).values


def test_a_nested_exec_inherits_the_outer_tools_through_the_current_tools_contextvar() -> None:
    current: list[str] = []

    def research() -> str:
        """Find out."""
        current.extend(tool.name for tool in _current_tools.get() or [])
        return runtime.exec("inner")

    function(forever)  # in the registry, and on no menu here
    model, requests = playing([call("research")], "inner", "outer")
    runtime = Runtime(model)
    assert runtime.exec("go", tools=[research, lookup]) == "outer"
    assert current == offered(requests[1]) == ["research", "lookup"]
    assert _current_tools.get() is None


@pytest.mark.parametrize(
    "policy",
    [{"tools_source": "headless"}, {"tools_allow": ["lookup"]}, {"tools_deny": ["forever"]}],
    ids=["tools_source", "tools_allow", "tools_deny"],
)
def test_tools_source_tools_allow_and_tools_deny_trim_the_menu(policy: dict[str, Any]) -> None:
    function(lookup)
    function(unsafe_in=["headless"])(forever)
    model, requests = playing("ok", "ok")
    Runtime(model).exec("go")
    Runtime(model).exec("go", **policy)
    assert [offered(request) for request in requests] == [["lookup", "forever"], ["lookup"]]


def test_with_tools_exec_loops_until_the_model_returns_pure_text() -> None:
    model, requests = playing(*[[call("forever")]] * 20, "Enough.", "never asked")
    assert Runtime(model).exec("go", tools=[forever]) == "Enough."
    assert len(requests) == 21


def test_with_tools_exec_loops_until_the_hard_cap_of_the_loop() -> None:
    still_at_it: Reply = ["Still at it.", call("forever")]
    model, requests = playing(*[still_at_it] * 60)
    assert Runtime(model).exec("go", tools=[forever]) == "Still at it."
    assert len(requests) == agent_loop.MAX_INNER_ITERATIONS == 50


def test_an_assistant_message_holds_textcontent_and_toolcalls_in_the_order_they_came() -> None:
    model, _ = playing(["Let me see.", call("lookup", word="a")], "A word.")
    runtime = Runtime(model)
    runtime.exec("a?", tools=[lookup])
    said = [message.content for message in the_run(runtime).messages if isinstance(message, AssistantMessage)]
    assert [[type(block) for block in content] for content in said] == [[TextContent, ToolCall], [TextContent]]
