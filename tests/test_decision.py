"""The last reply as a pick from `choices`."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, assert_type

import pytest
from pydantic import BaseModel, Field

from op_jupyter import DecisionError, OutputError, RunAborted, Runtime, agentic_function, function
from op_jupyter.events import AgentEvent
from op_jupyter.messages import ToolCall, ToolResultMessage, UserMessage
from op_jupyter.providers import Request
from op_jupyter.testing import call, scripted
from tests.conversation import Conversation, last_text


def pick(name: str, /, **arguments: Any) -> str:
    return json.dumps({"call": name, **arguments})


def refund(amount: int, reason: str = "none") -> str:
    """Give money back."""
    return f"refunded {amount!r}, {reason}"


def close() -> str:
    """Close the ticket."""
    return "closed"


def look_up() -> str:
    """Look something up."""
    return "9"


# -------------------------------------------------------------------- the menu


SENTINEL = object()
ORDER = {"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("choices", "reply", "value"),
    [
        pytest.param(
            {"back": refund, "shut": close}, pick("back", amount=3), "refunded 3, none", id="dict of functions"
        ),
        pytest.param({"back": (refund, "pay")}, pick("back", amount=3), "refunded 3, none", id="dict, described"),
        pytest.param({"a": lambda: 5, "b": lambda: 6}, pick("b"), 6, id="dict of lambdas"),
        pytest.param({"a": lambda x: x}, pick("a", x=[1]), [1], id="lambda with a parameter"),
        pytest.param({"a": SENTINEL, "b": 2}, pick("a"), SENTINEL, id="dict of values"),
        pytest.param({"a": None}, pick("a"), None, id="None is a value"),
        pytest.param({"a": (SENTINEL, "what it is")}, pick("a"), SENTINEL, id="described value"),
        pytest.param({"a": (1, 2)}, pick("a"), (1, 2), id="a tuple that is no description"),
        pytest.param({"a": "text"}, pick("a"), "text", id="a text is a value"),
        pytest.param([refund, close], pick("close"), "closed", id="list of functions"),
        pytest.param([(refund, "pay"), close], pick("refund", amount=1), "refunded 1, none", id="described function"),
        pytest.param(["yes", "no"], pick("no"), "no", id="names"),
        pytest.param([("yes", "it is so"), ("no", "it is not")], pick("yes"), "yes", id="described names"),
        pytest.param(
            [("order", "Buy", ORDER), close],
            pick("order", item="tea", count=2),
            {"decision": "order", "item": "tea", "count": 2},
            id="a schema",
        ),
        pytest.param([("stop", "Stop", {})], pick("stop"), {"decision": "stop"}, id="a schema without fields"),
        pytest.param((refund, "wait"), pick("wait"), "wait", id="a tuple of options"),
        pytest.param([partial(refund, reason="late")], pick("refund", amount=1), "refunded 1, late", id="partial"),
        pytest.param({"größe": "XL", "大": "L"}, '{"call": "größe"}', "XL", id="a name that is not ASCII"),
        pytest.param({"größe": "XL", "大": "L"}, '{"call": "\\u5927"}', "L", id="such a name, escaped"),
    ],
)
def test_each_form_of_the_menu_resolves_to_what_was_picked(choices: Any, reply: str, value: Any) -> None:
    conversation = Conversation(reply)
    assert conversation.exec(choices=choices) == value
    assert conversation.run.rounds == 1 and conversation.run.text == reply


def test_a_function_may_have_a_name_that_a_tool_may_not() -> None:
    def größe(zahl: int) -> int:
        return zahl

    assert Conversation(pick("größe", zahl=3)).exec(choices=[größe]) == 3


def test_a_class_is_picked_with_its_fields_and_made_of_them() -> None:
    @dataclass
    class Refund:
        """Give money back."""

        amount: int

    class Escalate(BaseModel):
        """Ask the boss."""

        level: Annotated[int, Field(le=3)]

    conversation = Conversation(pick("Escalate", level=4), pick("Escalate", level=2))
    assert conversation.exec(choices=[Refund, Escalate]) == Escalate(level=2)
    assert "level" in last_text(conversation.requests[1])
    assert "Ask the boss." in (conversation.requests[0].system or "")
    assert Conversation(pick("back", amount="5")).exec(choices={"back": Refund}) == Refund(5)


def test_an_object_that_can_be_called_and_a_bound_method_are_handlers() -> None:
    class Till:
        """The till."""

        def __init__(self) -> None:
            self.money = 10

        def __call__(self) -> int:
            return self.money

        def take(self, amount: int) -> int:
            self.money -= amount
            return self.money

    till = Till()
    assert Conversation(pick("take", amount=4)).exec(choices=[till.take]) == 6
    assert Conversation(pick("Till")).exec(choices=[till]) == 6


@pytest.mark.parametrize("key", ["call", "action", "function", "tool"])
def test_the_pick_may_be_called_by_four_words(key: str) -> None:
    assert Conversation(json.dumps({key: "refund", "amount": 2})).exec(choices=[refund]) == "refunded 2, none"


def test_an_argument_may_have_the_name_of_one_of_these_words() -> None:
    fields = {"properties": {"action": {"type": "string"}, "call": {"type": "string"}}}
    menu = [("move", "Move", fields)]
    picked = {"decision": "move", "action": "left"}
    assert Conversation('{"call": "move", "action": "left"}').exec(choices=menu) == picked
    assert Conversation('{"tool": "move", "action": "left"}').exec(choices=menu) == picked
    assert Conversation('{"action": "move", "call": "mum"}').exec(choices=menu) == {"decision": "move", "call": "mum"}


@pytest.mark.parametrize(
    "reply",
    [
        '{"call": "refund", "amount": 2}',
        '  \n{"call": "refund",\n "amount": 2}\n',
        '```json\n{"call": "refund", "amount": 2}\n```',
        'It was late, so:\n\n```\n{"call": "refund", "amount": 2}\n```\n\nThat is my decision.',
        '~~~\n{"call": "refund", "amount": 2}\n~~~',
        'First I thought of\n```json\n{"call": "close"}\n```\nbut no:\n```json\n{"call": "refund", "amount": 2}\n```',
        '- my pick:\n  ```json\n  {"call": "refund", "amount": 2}\n  ```',
        '```json\n{"call": "refund", "amount": 2}',
        '```python\nprint("not JSON")\n```\n```json\n{"call": "refund", "amount": 2}\n```\n',
    ],
)
def test_the_pick_is_read_bare_or_from_a_fenced_block(reply: str) -> None:
    conversation = Conversation(reply)
    assert conversation.exec(choices=[refund, close]) == "refunded 2, none"
    assert len(conversation.requests) == 1


def test_the_menu_stands_in_the_system_prompt_of_every_request_below_the_callers_own() -> None:
    def look() -> str:
        return "a ticket"

    conversation = Conversation([call("look")], "hm", pick("refund", amount=1))
    choices = [(refund, "Pay the customer."), ("wait", "Do\nnothing."), ("order", "Buy", ORDER)]
    conversation.exec(system="Be kind.", tools=[look], choices=choices)
    assert len(conversation.requests) == 3
    for request in conversation.requests:
        lines = (request.system or "").splitlines()
        assert lines[0] == "Be kind."
        (line,) = [line for line in lines if line.startswith('- "refund"')]
        assert "Pay the customer." in line and '"amount"' in line and '"integer"' in line
        assert '- "wait": Do nothing. (no arguments)' in lines
        assert any(line.startswith('- "order": Buy') and '"count"' in line for line in lines)


def test_the_system_prompt_of_the_runtime_stays_too() -> None:
    requests: list[Request] = []
    runtime = Runtime(model=scripted([lambda r: requests.append(r) or pick("yes")]), system="Be brief.")
    assert runtime.exec("go", tools=[], choices=["yes", "no"]) == "yes"
    assert (requests[0].system or "").startswith("Be brief.\n")


def test_an_option_that_takes_anything_does_not_say_that_it_takes_nothing() -> None:
    def anything(**fields: int) -> dict[str, int]:
        return fields

    conversation = Conversation(pick("anything", a=1, b=2))
    assert conversation.exec(choices=[anything, ("free", "Free", {})]) == {"a": 1, "b": 2}
    assert "no arguments" not in (conversation.requests[0].system or "")


def test_the_menu_of_functions_to_call_stays_what_it_was() -> None:
    conversation = Conversation(pick("close"))
    conversation.exec(tools=[refund], choices=[close])
    assert [tool.name for tool in conversation.requests[0].tools] == ["refund"]


@pytest.mark.parametrize(
    ("choices", "error", "word"),
    [
        ([], ValueError, "nothing to choose from"),
        ({}, ValueError, "nothing to choose from"),
        ([refund, refund], ValueError, "refund"),
        (["a", ("a", "again")], ValueError, "a"),
        ([""], ValueError, "no name"),
        ({" ": 1}, ValueError, "no name"),
        ([3], TypeError, "3"),
        ([("a", 3)], TypeError, "'a', 3"),
        ([(3, "three")], TypeError, "three"),
        ([("a", "b", 3)], TypeError, "'a', 'b', 3"),
        ([None], TypeError, "None"),
        ([lambda: 1], ValueError, "lambda"),
        ({1: refund}, TypeError, "1"),
        ("yes", TypeError, "str"),
        ({"yes", "no"}, TypeError, "set"),
        (5, TypeError, "int"),
        ([("a", "b", {"type": "array"})], ValueError, "array"),
        ([("a", "b", {"properties": {"x": {"type": "wrong"}}})], ValueError, "wrong"),
        ([("a", "b", {"properties": {"decision": {}}})], ValueError, "decision"),
        ({"a": int}, TypeError, "int"),
        ({"a": threading.Lock}, TypeError, "a"),
        ({"a": ValueError}, TypeError, "ValueError"),
    ],
)
def test_a_menu_that_makes_no_sense_is_refused_before_anything_is_asked(
    choices: Any, error: type[Exception], word: str
) -> None:
    conversation = Conversation(pick("a"))
    with pytest.raises(error, match=word) as caught:
        conversation.exec(choices=choices)
    assert not conversation.requests and conversation.runtime.last_run is None
    assert "\n" not in str(caught.value)


def test_a_function_that_no_model_could_call_is_refused_as_a_choice() -> None:
    def odd(lock: threading.Event) -> None: ...

    with pytest.raises(TypeError, match="lock"):
        Conversation().exec(choices={"odd": odd})


def test_choices_and_response_format_exclude_each_other() -> None:
    conversation = Conversation("1")
    with pytest.raises(ValueError, match="choices and response_format"):
        conversation.exec(choices=["a"], response_format=int)
    assert not conversation.requests


# -------------------------------------------------------------------- what is picked is run


def test_the_model_calls_functions_first_and_then_decides() -> None:
    def look(n: int) -> str:
        return f"ticket {n}"

    conversation = Conversation([call("look", n=1)], ["Hm.", call("look", n=2)], pick("refund", amount=2))
    assert conversation.exec(tools=[look], choices=[refund, close]) == "refunded 2, none"
    results = [m.text for m in conversation.run.messages if isinstance(m, ToolResultMessage)]
    assert results == ["ticket 1", "ticket 2"] and conversation.run.rounds == 3


def test_arguments_are_coerced_where_nothing_is_guessed_as_for_tools() -> None:
    def order(items: list[str], count: int, day: datetime.date, note: str = "-") -> tuple[Any, ...]:
        return items, count, day, note

    reply = pick("order", items='["a"]', count="5", day="2024-05-01", note=None)
    assert Conversation(reply).exec(choices=[order]) == (["a"], 5, datetime.date(2024, 5, 1), "-")
    fields = {"properties": {"count": {"type": "integer"}}}
    picked = Conversation(pick("a", count="5")).exec(choices=[("a", "A", fields)])
    assert picked == {"decision": "a", "count": 5}


def test_an_agentic_function_that_is_picked_gets_this_runtime() -> None:
    got: list[Runtime] = []

    @agentic_function
    def research(topic: str, runtime: Runtime) -> str:
        """Find out."""
        got.append(runtime)
        return runtime.exec(f"About {topic}", tools=[])

    conversation = Conversation(pick("research", topic="rain"), "It rains.")
    assert conversation.exec(choices=[research, close]) == "It rains."
    assert got == [conversation.runtime] and "runtime" not in (conversation.requests[0].system or "")
    assert conversation.run.text == pick("research", topic="rain"), "last_run is the run of the exec that has returned"


def test_an_agentic_function_under_another_name_and_an_async_one_get_it_too() -> None:
    @agentic_function
    async def research(topic: str, runtime: Runtime) -> str:
        """Find out."""
        return await runtime.aexec(f"About {topic}", tools=[])

    for how in (Conversation.exec, Conversation.aexec):
        conversation = Conversation(pick("dig", topic="rain"), "It rains.")
        assert how(conversation, choices={"dig": (research, "Dig")}) == "It rains."


async def doubled(n: int) -> int:
    """Double a number."""
    await asyncio.sleep(0)
    return n * 2


def counted(n: int) -> Iterator[int]:
    """Count."""
    yield from range(n)


async def counted_async(n: int) -> AsyncIterator[int]:
    """Count."""
    for i in range(n):
        yield i


@pytest.mark.parametrize("how", [Conversation.exec, Conversation.aexec])
@pytest.mark.parametrize(
    ("handler", "value"), [(doubled, 6), (lambda n: doubled(n), 6), (counted, [0, 1, 2]), (counted_async, [0, 1, 2])]
)
def test_an_async_function_is_awaited_and_a_generator_read(
    how: Callable[..., Any], handler: Callable[..., Any], value: Any
) -> None:
    assert how(Conversation(pick("it", n=3)), choices={"it": handler}) == value


def test_a_value_of_the_menu_is_never_awaited_or_read() -> None:
    generator = (n for n in range(3))
    assert Conversation(pick("a")).exec(choices={"a": generator}) is generator
    assert list(generator) == [0, 1, 2]


class Broken(Exception):
    pass


@pytest.mark.parametrize("how", [Conversation.exec, Conversation.aexec])
@pytest.mark.parametrize("error", [Broken("no\nmoney"), ValueError("wrong"), OutputError("own"), RunAborted()])
def test_what_the_picked_function_raises_comes_out_as_it_is(how: Callable[..., Any], error: Exception) -> None:
    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    for handler in (fail, fail_async):
        conversation = Conversation(pick("fail"))
        with pytest.raises(type(error)) as caught:
            how(conversation, choices={"fail": handler})
        assert caught.value is error
        assert (conversation.run.stop_reason, conversation.run.rounds) == ("stop", 1)


def test_an_interrupt_in_the_picked_function_is_one() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Conversation(pick("interrupted")).exec(choices=[interrupted])


def test_a_cancelled_aexec_leaves_no_picked_function_running() -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def cell() -> None:
        task = asyncio.create_task(conversation.runtime.aexec("go", tools=[], choices=[slow]))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    conversation = Conversation(pick("slow"))
    asyncio.run(cell())
    assert cancelled.wait(10)


def test_an_async_function_is_left_when_the_run_was_stopped_at_its_very_end() -> None:
    async def work() -> None:
        await asyncio.sleep(60)

    def stop(event: AgentEvent) -> None:
        if event.kind == "agent_end":
            conversation.runtime.abort()

    conversation = Conversation(pick("work"))
    with pytest.raises(RunAborted) as caught:
        conversation.exec(choices=[work], on_event=stop)
    assert caught.value.run is conversation.run


def test_stop_leaves_the_picked_async_function_of_a_nested_run() -> None:
    cancelled = threading.Event()

    async def slow() -> None:
        threading.Thread(target=conversation.runtime.abort).start()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def decide() -> None:
        conversation.runtime.exec("inner", tools=[], choices=[slow])

    conversation = Conversation([call("decide")], pick("slow"))
    with pytest.raises(RunAborted):
        conversation.exec(tools=[decide])
    assert cancelled.wait(10)


def test_a_function_that_asks_for_approval_is_no_choice_since_nobody_would_be_asked() -> None:
    @function(requires_approval=True)
    def wipe() -> None:
        """Wipe the disk."""

    conversation = Conversation(pick("wipe"))
    with pytest.raises(ValueError, match="approval"):
        conversation.exec(choices=[wipe])
    assert not conversation.requests


def test_a_function_that_is_not_available_is_no_choice() -> None:
    @function(available_if=False)
    def gone() -> None: ...

    with pytest.raises(ValueError, match="gone"):
        Conversation().exec(choices={"x": gone})


# -------------------------------------------------------------------- what cannot be used is sent back once


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I would refund it.", "not a JSON object"),
        ("", "not a JSON object"),
        ('["refund"]', "not a JSON object"),
        ('{"amount": 3}', '"call"'),
        ('{"call": "destroy"}', "destroy"),
        ('{"call": 3}', "3"),
        ('{"call": null}', "None"),
        ('{"call": "refund"}', "amount"),
        ('{"call": "refund", "amount": "much"}', "much"),
        ('{"call": "refund", "amount": 1, "color": "red"}', "color"),
        ('{"call": "close", "why": "done"}', "why"),
        ('{"call": "refund", "amount": NaN}', "not a JSON object"),
        ("[" * 50_000, "not a JSON object"),
        ('{"call": "refund", "amount": ' + "[" * 5_000 + "]" * 5_000 + "}", ""),
    ],
)
def test_a_pick_that_cannot_be_used_is_sent_back_once_with_the_reason(reply: str, reason: str) -> None:
    conversation = Conversation(reply, pick("refund", amount=7))
    assert conversation.exec(choices=[refund, close]) == "refunded 7, none"
    assert conversation.run.rounds == 2
    objection = last_text(conversation.requests[1])
    assert reason in objection and "refund" in objection and "close" in objection


@pytest.mark.parametrize("second", ["I insist.", pick("destroy"), pick("refund", amount="much", color="red"), ""])
@pytest.mark.parametrize("how", [Conversation.exec, Conversation.aexec])
def test_a_second_one_is_a_decision_error_of_one_line_with_the_run(how: Callable[..., Any], second: str) -> None:
    conversation = Conversation("Hm.", second, pick("refund", amount=1))
    with pytest.raises(DecisionError) as caught:
        how(conversation, choices=[refund, close])
    assert isinstance(caught.value, OutputError) and isinstance(caught.value, ValueError)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.run is conversation.run and conversation.run.rounds == 2
    assert conversation.run.stop_reason == "stop" and conversation.run.text == second


def test_no_function_runs_for_a_pick_that_cannot_be_used() -> None:
    ran: list[int] = []

    def work(n: int) -> None:
        ran.append(n)

    with pytest.raises(DecisionError):
        Conversation(pick("work", n="x"), pick("work")).exec(choices=[work])
    assert not ran


def test_the_model_may_call_functions_again_before_it_corrects_itself() -> None:
    conversation = Conversation(pick("refund"), [call("look_up")], pick("refund", amount=9))
    assert conversation.exec(tools=[look_up], choices=[refund]) == "refunded 9, none"
    assert [message.kind for message in conversation.run.messages] == [
        *("user", "assistant", "user", "assistant", "tool_result", "assistant")
    ]


def test_the_repair_round_counts_towards_the_cap() -> None:
    conversation = Conversation("Hm.", pick("close"))
    with pytest.raises(DecisionError, match="as often as it may") as caught:
        conversation.exec(choices=[close], max_iterations=1)
    assert caught.value.run is not None and caught.value.run.hit_cap and caught.value.run.rounds == 1
    assert Conversation("Hm.", pick("close")).exec(choices=[close], max_iterations=2) == "closed"


def test_a_pick_at_the_cap_is_a_pick() -> None:
    assert Conversation(pick("close")).exec(choices=[close], max_iterations=1) == "closed"


def test_a_run_that_is_cut_off_while_it_works_has_decided_nothing() -> None:
    conversation = Conversation([call("look_up")], pick("close"))
    with pytest.raises(DecisionError) as caught:
        conversation.exec(tools=[look_up], choices=[close], max_iterations=1)
    assert caught.value.run is not None and caught.value.run.hit_cap


def test_the_last_reply_decides_also_when_follow_ups_come_in_between() -> None:
    queued = [["are you sure?"], ["really?"]]
    conversation = Conversation(pick("refund", amount=1), "Let me think.", pick("close"))
    value = conversation.exec(choices=[refund, close], get_follow_up_messages=lambda: queued.pop(0) if queued else [])
    assert value == "closed" and conversation.run.rounds == 3


def test_a_message_of_the_person_during_the_decision_is_heard_before_it_counts() -> None:
    def first(request: Request) -> str:
        conversation.runtime.steer("no refunds today")
        return pick("refund", amount=1)

    conversation = Conversation(first, pick("close"))
    assert conversation.exec(choices=[refund, close]) == "closed"
    assert last_text(conversation.requests[1]) == "no refunds today"


def test_steering_between_the_objection_and_the_correction_does_not_buy_a_second_objection() -> None:
    def corrected(request: Request) -> list[ToolCall]:
        conversation.runtime.steer("hurry")
        return [call("look_up"), call("look_up")]

    conversation = Conversation("Hm.", corrected, "Still hm.", pick("close"))
    with pytest.raises(DecisionError):
        conversation.exec(tools=[look_up], choices=[close])
    assert conversation.run.rounds == 3
    sources = [message.source for message in conversation.run.messages if isinstance(message, UserMessage)]
    assert sources == ["user", "user", "steering"]


def test_a_decision_goes_on_from_a_history() -> None:
    runtime = Runtime(model=scripted(["The ticket is old.", pick("close")]))
    runtime.exec("What is it?", tools=[])
    assert runtime.last_run is not None
    assert runtime.exec("Decide.", tools=[], choices=[close], history=runtime.last_run.messages) == "closed"
    assert len(runtime.last_run.messages) == 4


def test_a_nested_run_decides_for_itself_and_the_outer_one_does_not_have_to() -> None:
    def triage(ticket: str) -> str:
        decided = conversation.runtime.exec(ticket, tools=[], choices=[refund, close])
        return f"decided: {decided}"

    conversation = Conversation([call("triage", ticket="x")], "Hm.", pick("close"), "All is well.")
    assert conversation.exec(tools=[triage]) == "All is well."
    assert ['"refund"' in (request.system or "") for request in conversation.requests] == [False, True, True, False]
    (child,) = conversation.run.children["call_1"]
    assert child.rounds == 2 and conversation.run.values == {"call_1": "decided: closed"}


def test_what_a_nested_decision_fails_with_is_a_result_that_the_outer_model_reads() -> None:
    def triage() -> Any:
        return conversation.runtime.exec("inner", tools=[], choices=[close])

    conversation = Conversation([call("triage")], "Hm.", "Hm.", pick("x"))
    assert conversation.exec(tools=[triage], choices=["x"]) == "x"
    (result,) = [message for message in conversation.run.messages if isinstance(message, ToolResultMessage)]
    assert result.is_error and result.text.startswith("DecisionError: ")


def test_type_checkers_know_what_choices_give() -> None:
    runtime = Runtime(model=scripted([pick("a"), pick("a")]))
    assert_type(runtime.exec("go", tools=[], choices=["a"]), Any)

    async def cell() -> None:
        assert_type(await runtime.aexec("go", tools=[], choices=["a"]), Any)

    asyncio.run(cell())


def test_the_arguments_of_a_pick_may_be_wrapped_as_in_the_call_of_a_function() -> None:
    def refund(order: int) -> str:
        return f"refunded {order}"

    assert Conversation('{"call": "refund", "arguments": {"order": 7}}').exec(choices=[refund]) == "refunded 7"
    assert Conversation('{"call": "wait", "arguments": {}}').exec(choices=["wait"]) == "wait"
