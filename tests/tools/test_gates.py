"""Which functions a run is offered: the six gates, presets, and what is offered by name only."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from op_jupyter import agentic_function, function
from op_jupyter.messages import ToolResultMessage
from op_jupyter.testing import call
from op_jupyter.tools import gates
from tests.conversation import Conversation
from tests.conversation import offered as offered_names


@pytest.fixture(autouse=True)
def nothing_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "disabled", set())


def offered(**arguments: Any) -> list[str]:
    """The menu of a run with these arguments."""
    conversation = Conversation("ok")
    conversation.runtime.exec("go", **arguments)
    return offered_names(conversation.requests[0])


def results(conversation: Conversation) -> list[ToolResultMessage]:
    return [message for message in conversation.run.messages if isinstance(message, ToolResultMessage)]


def tool(name: str, description: str = "", **options: Any) -> Callable[..., str]:
    """A registered function that returns its name."""

    def body(n: int = 0) -> str:
        return name

    body.__name__ = body.__qualname__ = name
    body.__doc__ = description or f"Do {name}."
    return function(**options)(body)


# -------------------------------------------------------------------- 1, 2: available, exposed, presets


def test_a_run_that_names_no_tools_is_offered_all_that_are_registered() -> None:
    tool("a"), tool("b")
    assert offered() == ["a", "b"]
    assert offered(tools=[]) == offered(toolset="none") == []


def test_whether_a_function_is_available_is_decided_when_it_is_defined() -> None:
    asked: list[int] = []

    def at_definition() -> bool:
        asked.append(1)
        return len(asked) > 1

    gone = tool("a", available_if=at_definition)
    assert offered() == offered(tools=[gone]) == []
    assert asked == [1]
    tool("a", available_if=at_definition)
    assert offered() == ["a"] and asked == [1, 1]
    tool("a", available_if=False)
    assert offered() == []


def test_a_function_that_is_not_exposed_is_offered_to_runs_that_name_it_or_a_preset_of_its() -> None:
    quiet = tool("quiet", expose=False, toolset=["files"])
    tool("loud")
    assert offered() == ["loud"]
    assert offered(tools=[quiet]) == offered(toolset="files") == ["quiet"]


def test_a_preset_is_the_functions_that_name_it() -> None:
    tool("a", toolset=["files", "all"]), tool("b", toolset="net"), tool("c", toolset={"all"}), tool("d")
    assert offered(toolset="files") == ["a"]
    assert offered(toolset="net") == ["b"]
    assert offered(toolset="all") == ["a", "c"]


def test_an_unknown_preset_is_refused_with_the_names_of_those_there_are() -> None:
    tool("a", toolset=["files", "net"])
    conversation = Conversation("ok")
    for name in ("file", ""):
        with pytest.raises(ValueError, match=r"There are: files, net, none\.$"):
            conversation.exec(tools=None, toolset=name)
    with pytest.raises(TypeError, match="toolset"):
        conversation.exec(tools=None, toolset=["files"])
    assert not conversation.requests


def test_tools_and_toolset_exclude_each_other() -> None:
    a = tool("a", toolset=["files"])
    for tools in ([a], []):
        with pytest.raises(ValueError, match="tools and toolset"):
            offered(tools=tools, toolset="files")


# -------------------------------------------------------------------- 3, 4: safe here, runnable now


def test_a_function_that_is_unsafe_in_a_channel_is_hidden_from_what_comes_through_it() -> None:
    wipe = tool("wipe", unsafe_in=["headless", "mail"], toolset=["disk"])
    tool("look", toolset=["disk"])
    for source in ("headless", "mail"):
        assert offered(tools_source=source) == offered(toolset="disk", tools_source=source) == ["look"]
        assert offered(tools=[wipe], tools_source=source) == []
        assert offered(tools_source=source, tools_allow=["wipe"]) == []
    for other in ("notebook", "a channel nobody speaks of", None):
        assert offered(tools_source=other) == ["wipe", "look"]


def test_the_channel_is_one_name() -> None:
    with pytest.raises(TypeError, match="tools_source"):
        offered(tools_source=["headless"])


def test_a_function_is_hidden_while_an_environment_variable_of_its_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    mail = tool("mail", requires_env=["MAIL_USER", "MAIL_KEY"], toolset=["net"])
    monkeypatch.delenv("MAIL_KEY", raising=False)
    monkeypatch.setenv("MAIL_USER", "me")
    assert offered() == offered(tools=[mail]) == offered(toolset="net") == []
    monkeypatch.setenv("MAIL_KEY", "")
    assert offered() == []
    monkeypatch.setenv("MAIL_KEY", "k")
    assert offered() == offered(tools=[mail]) == offered(toolset="net") == ["mail"]


def test_the_check_is_made_once_at_each_run_and_hides_the_function_when_it_says_no_or_fails() -> None:
    answers: list[Any] = [True, False, RuntimeError("no server"), "/usr/bin/git", None, True]

    def check() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    git = tool("git", check_fn=check)
    assert [offered() for _ in range(5)] == [["git"], [], [], ["git"], []]
    assert offered(tools=[git]) == ["git"] and not answers


# -------------------------------------------------------------------- 5: what the user says


def test_what_the_user_has_disabled_no_run_is_offered() -> None:
    a = tool("a", toolset=["x"])
    tool("b")
    gates.disabled.add("a")
    assert offered() == ["b"]
    assert offered(tools=[a]) == offered(toolset="x") == offered(tools_allow=["a"]) == []
    gates.disabled.clear()
    assert offered() == ["a", "b"]


def test_deny_subtracts_and_allow_is_a_ceiling() -> None:
    a, b = tool("a", toolset=["x"]), tool("b", toolset=["x"])
    tool("hidden", expose=False)
    assert offered(tools_deny=["a"]) == ["b"]
    assert offered(tools_allow=["a"]) == ["a"]
    assert offered(tools_allow=["a", "b"], tools_deny=["b"]) == ["a"]
    assert offered(tools_allow=["b"], tools=[a, b]) == offered(tools_allow=["b"], toolset="x") == ["b"]
    assert offered(tools_allow=["a", "hidden"]) == ["a"], "allowing adds nothing"
    assert offered(tools_allow=[]) == []
    assert offered(tools_deny=[]) == ["a", "b"]


@pytest.mark.parametrize("kind", [tuple, set, frozenset, iter, dict.fromkeys])
def test_the_names_may_come_in_any_collection_also_one_that_can_be_read_once(kind: Any) -> None:
    tool("a"), tool("b")
    assert offered(tools_deny=kind(["a"])) == ["b"]
    assert offered(tools_allow=kind(["a"])) == ["a"]


@pytest.mark.parametrize("argument", ["tools_allow", "tools_deny"])
def test_a_name_that_no_function_has_is_refused_with_those_there_are(argument: str) -> None:
    conversation = Conversation("ok")
    with pytest.raises(ValueError, match=rf"{argument}.*'shel'.*There are none"):
        conversation.exec(**{argument: ["shel"]})
    tool("shell")

    def plain() -> None: ...

    with pytest.raises(ValueError, match=rf"{argument}.*'shel'.*There are: plain, shell\.$"):
        conversation.exec(tools=[plain], **{argument: ["plain", "shel"]})
    assert not conversation.requests
    assert offered(tools=[plain], tools_deny=["plain"]) == []


@pytest.mark.parametrize("argument", ["tools_allow", "tools_deny"])
def test_anything_else_than_names_is_refused(argument: str) -> None:
    shell = tool("shell")
    with pytest.raises(TypeError, match=rf"{argument}.*list of names.*'shell'"):
        offered(**{argument: "shell"})
    with pytest.raises(TypeError, match=rf"{argument}.*names of functions"):
        offered(**{argument: ["shell", shell]})


@pytest.mark.parametrize(
    "hide",
    [
        {"available_if": False},
        {"expose": False},
        {"unsafe_in": ["headless"]},
        {"requires_env": ["NOT_SET_ANYWHERE"]},
        {"check_fn": lambda: False},
        {"denied": True},
        {"disabled": True},
    ],
    ids=lambda hide: next(iter(hide)),
)
@pytest.mark.parametrize("defer", [False, True])
def test_a_hidden_function_that_is_called_anyway_is_not_found_and_not_spoken_of(
    hide: dict[str, Any], defer: bool
) -> None:
    options = {name: value for name, value in hide.items() if name not in ("denied", "disabled")}
    tool("secret", "Reveal everything.", defer=defer, **options)
    tool("open")
    if "disabled" in hide:
        gates.disabled.add("secret")
    conversation = Conversation([call("secret"), call("tool_search", query="secret")], "ok")
    conversation.exec(tools=None, tools_source="headless", tools_deny=["secret"] if "denied" in hide else None)
    found, search = results(conversation)
    assert found.is_error and found.text == "There is no function 'secret'. There are: open."
    assert search.is_error and search.text == "There is no function 'tool_search'. There are: open."
    assert not conversation.run.values
    assert all("secret" not in tool.name + tool.description for tool in conversation.requests[0].tools)


def test_a_choice_can_not_force_a_hidden_function() -> None:
    tool("secret", unsafe_in=["headless"])
    with pytest.raises(ValueError, match="secret"):
        offered(tools_source="headless", tool_choice={"type": "function", "name": "secret"})


# -------------------------------------------------------------------- 6: offered by name


def weather() -> None:
    """Register three deferred functions, and one that is not."""
    tool("get_weather", "Get the weather of a city.\n\nNot this line.", defer=True)
    tool("send_mail", "Send a mail.", defer=True)
    tool("read_mail", "Read mails of a city.", defer=True)
    tool("now", "Tell the time.")


def test_a_deferred_function_is_a_name_and_one_line_until_it_is_loaded() -> None:
    weather()
    conversation = Conversation([call("tool_search", query="get_weather")], [call("get_weather", n=1)], "Sunny.")
    assert conversation.exec(tools=None) == "Sunny."
    first, second, third = conversation.requests
    assert offered_names(first) == ["now", "tool_search"]
    (search,) = [spec for spec in first.tools if spec.name == "tool_search"]
    listed = [line for line in search.description.splitlines() if line.startswith("- ")]
    assert listed == [
        *(
            "- get_weather: Get the weather of a city.",
            "- send_mail: Send a mail.",
            "- read_mail: Read mails of a city.",
        )
    ]
    assert offered_names(second) == offered_names(third) == ["now", "tool_search", "get_weather"]
    (spec,) = [spec for spec in second.tools if spec.name == "get_weather"]
    assert spec.parameters["properties"]["n"]["type"] == "integer"
    loaded, result = results(conversation)
    assert json.loads(loaded.text)[0]["parameters"] == spec.parameters
    assert (result.text, result.is_error) == ("get_weather", False)


def test_calling_one_before_it_is_loaded_says_to_load_it_and_runs_nothing() -> None:
    weather()
    conversation = Conversation(
        [call("get_weather")], [call("tool_search", query="get_weather")], [call("get_weather")], "ok"
    )
    conversation.exec(tools=None)
    early, _, late = results(conversation)
    assert early.is_error and "tool_search" in early.text and "get_weather" in early.text
    assert late.text == "get_weather" and list(conversation.run.values) == ["call_2", "call_3"]


def test_loading_and_calling_in_one_message_works_in_that_order() -> None:
    weather()
    conversation = Conversation([call("send_mail"), call("tool_search", query="send_mail"), call("send_mail")], "ok")
    conversation.exec(tools=None)
    assert [result.is_error for result in results(conversation)] == [True, False, False]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("get_weather", ["get_weather"]),
        ("Get_Weather, please", ["get_weather"]),
        ("get_weather send_mail", ["get_weather", "send_mail"]),
        ("weather", ["get_weather"]),
        ("mail", ["send_mail", "read_mail"]),
        ("the weather in Paris", ["get_weather"]),
        ("send MAIL", ["send_mail"]),
        ("mail_send", ["send_mail"]),
        ("city", ["get_weather", "read_mail"]),
    ],
)
def test_functions_are_found_by_name_or_by_words(query: str, found: list[str]) -> None:
    weather()
    conversation = Conversation([call("tool_search", query=query)], "ok")
    conversation.exec(tools=None)
    assert offered_names(conversation.requests[1]) == ["now", "tool_search", *found]


@pytest.mark.parametrize("query", ["quantum", "", "?!"])
def test_when_nothing_is_found_the_result_says_so_with_what_there_is(query: str) -> None:
    weather()
    conversation = Conversation([call("tool_search", query=query)], "ok")
    conversation.exec(tools=None)
    (result,) = results(conversation)
    assert result.is_error and "get_weather, send_mail, read_mail" in result.text
    assert offered_names(conversation.requests[1]) == ["now", "tool_search"]


def test_several_searches_add_up_and_one_for_what_is_loaded_is_answered_again() -> None:
    weather()
    conversation = Conversation(
        [call("tool_search", query="get_weather")],
        [call("tool_search", query="mail")],
        [call("tool_search", query="get_weather")],
        [call("tool_search", query="get_weather send_mail")],
        "ok",
    )
    conversation.exec(tools=None)
    everything = ["now", "tool_search", "get_weather", "send_mail", "read_mail"]
    assert [offered_names(request) for request in conversation.requests[1:]] == [everything[:3], *[everything] * 3]
    assert not any(result.is_error for result in results(conversation))


def test_a_name_with_a_dash_is_found_alone() -> None:
    from op_jupyter.tools.registry import as_tool, register

    for name in ("my-tool", "my-other-tool"):
        spec = {"name": name, "description": "My tool"}
        added = as_tool({"spec": spec, "execute": lambda: 1})
        register(type(added)(**{field: getattr(added, field) for field in added.__slots__} | {"defer": True}))
    conversation = Conversation([call("tool_search", query="my-tool")], "ok")
    conversation.exec(tools=None)
    assert offered_names(conversation.requests[1]) == ["tool_search", "my-tool"]


def test_without_deferred_functions_there_is_no_search() -> None:
    later = tool("later", defer=True)
    tool("now")
    assert offered(tools_deny=["later"]) == ["now"]
    assert offered(tools=[later]) == ["later"], "named, it is offered in full"
    gates.disabled.add("later")
    assert offered() == ["now"]


def test_presets_and_allow_keep_what_is_deferred_deferred() -> None:
    tool("later", defer=True, toolset=["x"]), tool("other", defer=True)
    conversation = Conversation([call("tool_search", query="other later")], "ok")
    conversation.exec(tools=None, toolset="x")
    assert [offered_names(request) for request in conversation.requests] == [["tool_search"], ["tool_search", "later"]]
    assert offered(tools_allow=["later"]) == ["tool_search"]


def test_a_choice_that_names_a_deferred_function_loads_it() -> None:
    weather()
    conversation = Conversation([call("send_mail")], "ok")
    conversation.exec(tools=None, tool_choice={"type": "function", "name": "send_mail"})
    assert sorted(offered_names(conversation.requests[0])) == ["now", "send_mail", "tool_search"]
    search = next(spec for spec in conversation.requests[0].tools if spec.name == "tool_search")
    assert "send_mail" not in search.description and "get_weather" in search.description
    assert results(conversation)[0].text == "send_mail"


def test_a_choice_that_names_the_only_deferred_function_leaves_nothing_to_search() -> None:
    tool("later", defer=True)
    assert offered(tool_choice={"type": "function", "name": "later"}) == ["later"]


def test_each_run_loads_for_itself() -> None:
    weather()
    conversation = Conversation([call("tool_search", query="get_weather")], "ok", "ok again")
    conversation.exec(tools=None)
    conversation.exec(tools=None)
    assert [len(request.tools) for request in conversation.requests] == [2, 3, 2]


def test_a_function_of_the_users_own_named_tool_search_is_one_until_something_is_deferred() -> None:
    tool("tool_search", "Search for tools in the shed.")
    conversation = Conversation([call("tool_search", n=3)], "ok")
    conversation.exec(tools=None)
    assert results(conversation)[0].text == "tool_search"
    later = tool("later", defer=True)
    with pytest.raises(ValueError, match="tool_search"):
        offered()
    assert offered(tools=[later]) == ["later"]
    tool("tool_search", defer=True)
    with pytest.raises(ValueError, match="tool_search"):
        offered()
    assert offered(tools_deny=["tool_search"]) == ["tool_search"], "the one that loads"


# -------------------------------------------------------------------- in nested runs


def nested(conversation: Conversation, **arguments: Any) -> Callable[..., Any]:
    """A function that asks again, with these arguments."""

    def ask() -> str:
        return str(conversation.runtime.exec("inner", **arguments))

    return ask


def test_a_nested_run_inherits_what_is_deferred_and_what_is_loaded() -> None:
    weather()

    @agentic_function
    def ask(runtime: Any) -> str:
        """Ask again."""
        return str(runtime.exec("inner"))

    conversation = Conversation(
        [call("tool_search", query="get_weather"), call("ask")],
        [call("tool_search", query="send_mail"), call("get_weather"), call("send_mail")],
        "inner done",
        "done",
    )
    assert conversation.exec(tools=None) == "done"
    _, inner, inner_again, outer_again = conversation.requests
    assert set(offered_names(inner)) == {"now", "ask", "get_weather", "tool_search"}
    listed = next(spec.description for spec in inner.tools if spec.name == "tool_search")
    assert "send_mail" in listed and "get_weather" not in listed
    assert set(offered_names(inner_again)) == {"now", "ask", "get_weather", "tool_search", "send_mail"}
    assert set(offered_names(outer_again)) == {"now", "ask", "get_weather", "tool_search"}, "the child loads for itself"
    (child,) = conversation.run.children["call_2"]
    assert [message.text for message in child.messages if isinstance(message, ToolResultMessage)][1:] == [
        *("get_weather", "send_mail")
    ]


def test_when_all_is_loaded_a_nested_run_has_nothing_to_search() -> None:
    tool("later", defer=True)
    conversation = Conversation([call("tool_search", query="later"), call("ask")], "inner", "done")
    function(nested(conversation))
    conversation.exec(tools=None)
    assert sorted(offered_names(conversation.requests[1])) == ["ask", "later"]


def test_a_nested_run_inherits_a_function_named_tool_search_that_is_the_users_own() -> None:
    def tool_search(where: str) -> str:
        """Search the shed."""
        return f"nothing in {where}"

    conversation = Conversation([call("ask")], [call("tool_search", where="shed")], "inner", "done")
    conversation.exec(tools=[tool_search, nested(conversation)])
    assert offered_names(conversation.requests[1]) == ["tool_search", "ask"]
    (child,) = conversation.run.children["call_1"]
    assert list(child.values.values()) == ["nothing in shed"]


def test_a_nested_run_may_name_a_deferred_function_and_has_it_in_full() -> None:
    later = tool("later", defer=True)
    conversation = Conversation([call("ask")], [call("later")], "inner", "done")
    function(nested(conversation, tools=[later]))
    conversation.exec(tools=None)
    assert offered_names(conversation.requests[1]) == ["later"]
    assert offered_names(conversation.requests[3]) == ["ask", "tool_search"]


def test_a_nested_run_may_force_a_deferred_function() -> None:
    tool("later", defer=True)
    conversation = Conversation([call("ask")], [call("later")], "inner", "done")
    function(nested(conversation, tool_choice={"type": "function", "name": "later"}))
    conversation.exec(tools=None)
    assert sorted(offered_names(conversation.requests[1])) == ["ask", "later"]


def test_the_gates_are_asked_again_at_each_nested_run() -> None:
    open_ = [True, True, False]
    tool("door", check_fn=lambda: open_.pop(0))
    conversation = Conversation([call("ask"), call("ask")], "one", "two", "done")
    function(nested(conversation))
    conversation.exec(tools=None)
    assert [sorted(offered_names(request)) for request in conversation.requests] == [
        *(["ask", "door"], ["ask", "door"], ["ask"], ["ask", "door"])
    ]
