"""What `openai-responses:` sends: the body of a request, from the conversation and the menu."""

from __future__ import annotations

from typing import Any

import pytest

from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    Message,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from op_jupyter.providers import ToolChoice
from tests.providers.adapter import ADD, HI, NOW, result
from tests.providers.responses_wire import body_of, input_of, read_by_the_sdk, said, server, thought

PNG = ImageContent(b"\x89PNG", "image/png")
PNG_PART = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"}
HI_ITEM = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}


def text_item(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content} | more


def kinds_of(*messages: Message, **settings: Any) -> list[str]:
    """The types of what is sent, and roles of what a person says."""
    return [item.get("type") or item["role"] for item in input_of(*messages, **settings)]


# -------------------------------------------------------------------- settings


def test_a_plain_question_is_a_plain_body() -> None:
    assert body_of(HI, system="Be brief.") == {
        "model": "gpt-test",
        "instructions": "Be brief.",
        "input": [HI_ITEM],
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }


def test_options_override_everything() -> None:
    options = {"store": True, "include": [], "instructions": "Mine.", "model": "other", "input": "Mine", "top_p": 1}
    body = body_of(HI, system="Yours.", options=options)
    assert {name: body[name] for name in options} == options


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "chatgpt-4o-latest", "ft:gpt-4o:me::x"])
def test_a_model_that_does_not_think_is_not_asked_for_what_it_thought(name: str) -> None:
    assert "include" not in body_of(HI, options={"model": name})
    mine = ["web_search_call.action.sources"]
    assert body_of(HI, options={"model": name, "include": mine})["include"] == mine


@pytest.mark.parametrize("choice", ["auto", "required", "none", {"type": "function", "name": "add"}])
def test_the_tool_choice_is_said_in_this_wire_s_words(choice: ToolChoice) -> None:
    body = body_of(HI, tools=[ADD], tool_choice=choice, parallel_tool_calls=False)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == (choice, False)
    function = {"type": "function", "name": "add", "description": "Add two numbers.", "strict": False}
    assert body["tools"] == [function | {"parameters": ADD.parameters}]
    assert "parallel_tool_calls" not in body_of(HI, tools=[ADD], tool_choice=choice)
    assert body_of(HI, tools=[ADD], parallel_tool_calls=True)["parallel_tool_calls"] is True


def test_without_tools_nothing_is_said_of_them() -> None:
    body = body_of(HI, said(ToolCall("c1", "add")), tool_choice="required", parallel_tool_calls=False)
    assert body.keys() & {"tools", "tool_choice", "parallel_tool_calls"} == set()


def test_tools_of_the_server_are_offered_beside_the_functions() -> None:
    search = {"type": "web_search", "search_context_size": "low"}
    body = body_of(HI, tools=[ADD, NOW], options={"tools": [search]})
    assert [tool.get("name") for tool in body["tools"]] == ["add", "now", None]
    assert body["tools"][-1] == search
    assert body_of(HI, options={"tools": [search]})["tools"] == [search]


def test_a_tool_of_the_options_takes_the_place_of_the_function_of_that_name() -> None:
    mine = {"type": "function", "name": "add", "parameters": ADD.parameters, "strict": True}
    assert body_of(HI, tools=[ADD], options={"tools": [mine]})["tools"] == [mine]


# -------------------------------------------------------------------- the conversation


def test_results_stand_in_the_order_of_their_calls_before_what_was_said_meanwhile() -> None:
    items = input_of(
        HI,
        said(TextContent("Three at once."), ToolCall("c1", "plot"), ToolCall("c2", "plot"), ToolCall("c3", "plot")),
        result("c2", TextContent("two"), PNG),
        result("c1", TextContent("one"), TextContent("more")),
        UserMessage("Wait!", source="steering"),
        result("c3", TextContent("ValueError: no data"), is_error=True),
        UserMessage([TextContent("Look:"), PNG]),
    )
    assert items[1] == text_item("Three at once.")
    assert items[2] == {"type": "function_call", "call_id": "c1", "name": "plot", "arguments": "{}"}
    assert items[5:] == [
        {"type": "function_call_output", "call_id": "c1", "output": "one\n\nmore"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}, PNG_PART]},
        {"type": "function_call_output", "call_id": "c3", "output": "ValueError: no data"},
        {"role": "user", "content": [{"type": "input_text", "text": "Wait!"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Look:"}, PNG_PART]},
    ]


def test_a_result_of_a_picture_is_that() -> None:
    assert input_of(HI, said(ToolCall("c1", "plot")), result("c1", PNG))[-1]["output"] == [PNG_PART]


def test_arguments_that_were_no_object_are_sent_as_an_empty_one() -> None:
    call = input_of(HI, said(ToolCall("c1", "add", {}, "[1, 2")))[1]
    assert call == {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}


def test_ids_that_are_too_long_are_replaced_on_both_sides_and_others_go_back_as_they_came() -> None:
    ids = ["functions.add:0", "ä b", "x" * 64, "x" * 65, "x" * 449 + "y", "", "half \ud83d" * 20]
    items = input_of(HI, said(*(ToolCall(given, "add") for given in ids)), *(result(given) for given in ids))
    sent = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert sent == [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sent[:3] == ids[:3]
    assert len(set(sent)) == len(ids)
    assert all(0 < len(id) <= 64 for id in sent)


def test_what_another_provider_said_is_sent_as_far_as_it_can_be_said_here() -> None:
    content: list[Block] = [
        ThinkingContent("Hm.", provider_data={"anthropic": {"signature": "c2ln"}}),
        TextContent("", {"gemini": {"thought_signature": "c2ln"}}),
        ServerContent("web_search", {"id": "s1", "type": "server_tool_use"}, {"anthropic": {"type": "x"}}),
        ImageContent(b"\x89PNG", "image/png"),
        TextContent("Yes."),
        ToolCall("toolu_1", "add", {"a": 1}, provider_data={"gemini": {"id": "no", "thought_signature": "c2ln"}}),
    ]
    assert input_of(HI, AssistantMessage(content, provider="gemini"), result("toolu_1"))[1:] == [
        text_item("Yes."),
        {"type": "function_call", "call_id": "toolu_1", "name": "add", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "toolu_1", "output": "done"},
    ]


def test_a_reply_of_which_nothing_can_be_sent_is_left_out() -> None:
    assert kinds_of(HI, AssistantMessage([ThinkingContent("Hm.")]), UserMessage("And?")) == ["user", "user"]


# -------------------------------------------------------------------- its own items


def test_its_own_items_go_back_as_they_came() -> None:
    own = {"id": "fc_1", "namespace": "crm", "caller": {"type": "program", "caller_id": "prog_1"}}
    search = server(type="web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "tea"})
    items = input_of(
        HI,
        said(
            thought("I search.", content=[]),
            search,
            thought(id="rs_2", encrypted="bW9yZQ=="),
            TextContent("Tea.", {"openai-responses": {"id": "msg_1", "phase": "commentary"}}),
            ToolCall("c1", "add", provider_data={"openai-responses": own}),
        ),
        result("c1"),
    )
    summary = [{"type": "summary_text", "text": "I search."}]
    assert items[1:] == [
        {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "ZW5j"},
        search.data,
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "bW9yZQ=="},
        text_item("Tea.", id="msg_1", phase="commentary"),
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"} | own,
        {"type": "function_call_output", "call_id": "c1", "output": "done", "caller": own["caller"]},
    ]


def test_what_is_quoted_in_a_text_goes_back_with_it() -> None:
    cited = {"type": "url_citation", "start_index": 0, "end_index": 3, "url": "https://example.org", "title": "Tea"}
    content = [{"type": "output_text", "text": "Tea.", "annotations": [cited]}]
    text = TextContent("Tea.", {"openai-responses": {"id": "msg_1", "content": content}})
    assert input_of(HI, said(text))[1] == text_item("Tea.", id="msg_1") | {"content": content}


@pytest.mark.parametrize(
    "reply",
    [
        said(thought("Hm."), server(type="compaction", id="cmp_1", encrypted_content="ZW5j"), model="other"),
        said(thought("Hm."), provider_data=None, stop_reason="aborted"),
    ],
    ids=["another model", "a reply that broke off"],
)
def test_what_no_one_can_read_is_left_out(reply: AssistantMessage) -> None:
    own: dict[str, Any] = {"openai-responses": {"id": "fc_1", "phase": "commentary"}}
    reply.content.extend([TextContent("Tea.", own), ToolCall("c1", "add", provider_data=own)])
    assert input_of(HI, reply, result("c1"))[1:3] == [
        text_item("Tea."),
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
    ]


def test_the_model_that_counts_is_the_one_that_is_asked() -> None:
    reply = said(thought(), TextContent("3"), model="gpt-other")
    assert kinds_of(HI, reply) == ["user", "message"]
    assert kinds_of(HI, reply, options={"model": "gpt-other"}) == ["user", "reasoning", "message"]


def test_thinking_of_which_nothing_came_does_not_go_back() -> None:
    assert kinds_of(HI, said(thought("Hm."), stop_reason="length"), UserMessage("And?")) == ["user", "user"]
    own = {"openai-responses": {"id": "msg_1"}}
    assert kinds_of(HI, said(thought("Hm."), TextContent("\n", own)), UserMessage("And?")) == ["user", "user"]


def test_thinking_that_is_not_encrypted_goes_back_where_the_server_can_know_it() -> None:
    summed_up = said(thought("Hm.", encrypted=None), TextContent("3"))
    assert kinds_of(HI, summed_up) == ["user", "message"]
    assert kinds_of(HI, summed_up, options={"store": True}) == ["user", "reasoning", "message"]
    plain = [{"type": "reasoning_text", "text": "Hm."}]
    item = input_of(HI, said(thought(encrypted=None, content=plain), TextContent("3")))[1]
    assert item == {"type": "reasoning", "id": "rs_1", "summary": [], "content": plain}


def test_ids_of_items_that_the_server_gives_and_then_refuses_are_left_out() -> None:
    own: dict[str, Any] = {"openai-responses": {"id": "x" * 408}}
    call = ToolCall("c1", "add", provider_data=own)
    items = input_of(HI, said(thought(id="x" * 65), TextContent("3", own), call))
    assert ["id" in item for item in items] == [False] * 5
    assert "id" in input_of(HI, said(thought(id="x" * 64), TextContent("3")))[1]


def test_a_call_of_a_custom_tool_is_answered_as_one() -> None:
    own = {"id": "ctc_1", "input": "SELECT 1"}
    call = ToolCall("c1", "write_sql", {}, "SELECT 1", {"openai-responses": own})
    sent = {"type": "custom_tool_call", "call_id": "c1", "name": "write_sql", "input": "SELECT 1"}
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}
    assert input_of(HI, said(call), result("c1"))[1:] == [sent | {"id": "ctc_1"}, output]
    assert input_of(HI, said(call, model="other"), result("c1"))[1:] == [sent, output]


def test_what_the_server_ran_goes_back_and_what_it_waits_for_in_vain_does_not() -> None:
    listed = server(type="mcp_list_tools", id="mcpl_1", server_label="zip1", tools=[])
    found = [
        server(type="tool_search_call", id="tsc_1", call_id=None, execution="server", arguments={}),
        server(type="tool_search_output", id="tso_1", call_id=None, execution="server", tools=[]),
    ]
    shell = [
        server(type="shell_call", id="sh_1", call_id="s1", action={}),
        server(type="shell_call_output", id="sho_1", call_id="s1", output=[]),
    ]
    waiting = [
        server(type="shell_call", id="sh_2", call_id="s2", action={}),
        server(type="tool_search_call", id="tsc_2", call_id="t2", execution="client", arguments={}),
        server(type="mcp_approval_request", id="mcpr_1", name="shorten", arguments="{}", server_label="zip1"),
        server(type="computer_call", id="cu_1", call_id="u1", actions=[]),
    ]
    assert input_of(HI, said(listed, *found, *shell, *waiting, TextContent("3")))[1:-1] == [
        block.data for block in (listed, *found, *shell)
    ]


def test_what_the_server_has_not_finished_does_not_go_back() -> None:
    begun = ServerContent("web_search_call", {"type": "web_search_call", "id": "ws_1", "status": "in_progress"})
    assert kinds_of(HI, said(thought("Hm."), begun, stop_reason="error")) == ["user"]


def test_what_is_sent_is_of_the_sdk_s_own_types() -> None:
    own: dict[str, Any] = {"openai-responses": {"id": "msg_1", "phase": "commentary"}}
    body = body_of(
        UserMessage([TextContent("Look:"), PNG]),
        said(
            thought("Hm."),
            server(type="web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "tea"}),
            TextContent("Tea.", own),
            ToolCall("c1", "plot", {"a": 1}, provider_data={"openai-responses": {"id": "fc_1"}}),
            ToolCall("c2", "sql", {}, "SELECT 1", {"openai-responses": {"id": "ctc_1", "input": "SELECT 1"}}),
        ),
        result("c1", TextContent("a plot"), PNG),
        result("c2"),
        system="Be brief.",
        tools=[ADD, NOW],
        tool_choice={"type": "function", "name": "add"},
        parallel_tool_calls=False,
    )
    assert read_by_the_sdk(body) == body
