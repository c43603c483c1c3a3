"""What a model or a function says can do nothing in a page, can be read there, and does not keep the page waiting.

One run in a live JupyterLab, in the saved notebook opened again, and in its HTML export with scripts on.
"""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import CDPSession, Dialog, Page

from op_jupyter import Run
from op_jupyter.messages import (
    AssistantMessage,
    Block,
    ImageContent,
    ServerContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from op_jupyter.notebook.bundle import mime_bundle
from op_jupyter.record import AssistantStep, CallStep, RetryStep, Step, UserStep
from tests.browser.lab import AGENT, STOP, Lab, Notebook, calls, export, need_chromium, read, says
from tests.providers.chat_wire import DONE, call_delta, chunk
from tests.providers.wire_server import Answer, WireServer

need_chromium()

EVIL = """ </pre></code></span></summary></details></div></textarea></style></template></script>
<script>window.pwned = 1</script> <img src=x onerror="window.pwned = 2"> <svg onload="window.pwned = 3"></svg>
<iframe src="https://evil.example/a"></iframe> <style>@import url(https://evil.example/b); * { display: none }</style>
<base href="https://evil.example/"> <meta http-equiv="refresh" content="0;url=https://evil.example/">
<a href="javascript:window.pwned=4">a</a> <form action="https://evil.example/"><button autofocus>b</button></form>
<img src="https://evil.example/c.png"> ![pixel](https://evil.example/d.png) [page](https://evil.example/e)
[script](javascript:window.pwned=5) [data](data:text/html,<script>window.pwned=6</script>) &lt;b&gt;
\x1b[31m\x1b[2J\x1b]52;c;aGk=\x07 \x9b1m \x00 \u202egnp.exe \u2028 \ud83d \U0001f600 &#x202e;gnp &#8294; """
READ = EVIL.translate(
    {ord(acts): acts.encode("unicode_escape").decode() for acts in "\x1b\x07\x9b\x00\u202e\u2028"} | {0xD83D: 0xFFFD}
)
"""How a person reads it."""


def evil(place: str) -> str:
    return f"BEGIN-{place}{EVIL}END-{place}"


FUNCTIONS = f"""
from IPython.display import HTML

@function
def echo(text: str) -> str:
    print({evil("printed")!a})
    display(HTML({evil("shown")!a}))
    return {evil("returned")!a}

@function
def fail() -> str:
    raise ValueError({evil("raised")!a})
"""


def sent(chunk: dict[str, Any]) -> bytes:
    """A chunk with half characters in it, as JSON can write them."""
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def evil_replies() -> list[Answer]:
    calls = [
        ("echo", json.dumps({"text": evil("argued")})),
        ("fail", "{}"),
        (evil("named"), "{}"),
        ("echo", evil("broken")),
    ]
    deltas = [
        call_delta(index=n, id=f"c{n}", type="function", name=name, arguments=arguments)
        for n, (name, arguments) in enumerate(calls)
    ]
    first = [{"reasoning_content": evil("reasoned")}, {"content": evil("said")}]
    return [
        Answer(pieces=[*map(sent, [*map(chunk, first), *deltas, chunk({}, "tool_calls")]), DONE]),
        Answer(pieces=[sent(chunk({"content": evil("answered")})), *STOP]),
    ]


class Watch:
    """What is done in a page that no run may do."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._dialogs: list[str] = []
        self._hosts: set[str] = set()
        page.on("dialog", self._on_dialog)
        page.on("request", lambda request: self._hosts.add(urlsplit(request.url).netloc))
        page.on("websocket", lambda socket: self._hosts.add(urlsplit(socket.url).netloc))
        # What another host is asked is seen, and goes nowhere.
        page.route(lambda url: urlsplit(url).hostname not in ("127.0.0.1", None), lambda route: route.abort())

    def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs.append(dialog.message)
        dialog.dismiss()

    def assert_nothing_ran(self, *hosts: str) -> None:
        """No script of the run ran, no other page was opened, and nobody but these hosts was asked."""
        self._page.wait_for_load_state("networkidle")
        assert self._page.evaluate("window.pwned") is None
        assert self._dialogs == []
        assert self._hosts - {""} <= {*hosts}
        assert self._page.context.pages == [self._page] and "evil" not in self._page.url


def assert_whole(text: str, *places: str) -> None:
    for place in places:
        assert f"BEGIN-{place}{READ}END-{place}" in text, place


def assert_there(text: str, *places: str) -> None:
    for place in places:
        assert f"BEGIN-{place} </pre>" in text and f"END-{place}" in text, place


def test_a_hostile_run_can_be_read_and_does_nothing_live_opened_again_and_exported(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    watch, server = Watch(page), urlsplit(lab.url).netloc
    wire.script = evil_replies()
    notebook = lab.run(page, "hostile.ipynb", FUNCTIONS, f"%%agent\n{kept('asked')}", "6 * 7")
    # The notebook goes on as ever: the cell after it has run.
    notebook.text("42").wait_for()
    text = read(page, ".run")
    assert_whole(text, "reasoned", "printed", "returned", "raised", "broken")
    # Of a name the beginning, of arguments the JSON, and Markdown as it is drawn.
    assert_there(text, "asked", "argued", "named", "said", "answered")
    assert_readable(text, "said", "answered")
    links = page.locator(".run a").evaluate_all("all => all.map(a => `${a.target} ${a.rel} ${a.href}`)")
    assert set(links) == {f"_blank noopener noreferrer https://evil.example/{name}" for name in ("d.png", "e")}
    watch.assert_nothing_ran(server)

    notebook.saved("END-answered")
    Notebook(page, lab, "hostile.ipynb")
    page.locator(".run").wait_for()
    assert read(page, ".run") == text
    watch.assert_nothing_ran(server)

    page.goto(export(notebook.path).as_uri())
    text = read(page, ".jp-OutputArea:has(details)")
    assert_whole(text, "printed", "returned", "raised", "broken")
    assert_there(text, "asked", "argued", "reasoned", "said", "answered")
    assert_readable(text, "named", "said", "answered")
    links = page.locator(".jp-OutputArea details a, .jp-OutputArea p a").evaluate_all("all => all.map(a => a.href)")
    assert set(links) == {"https://evil.example/d.png", "https://evil.example/e"}
    # The export asks for its own scripts there, whatever is in the notebook.
    watch.assert_nothing_ran(server, "cdnjs.cloudflare.com")


def kept(place: str) -> str:
    """What stands in a file, which holds no half characters."""
    return evil(place).replace("\ud83d", "\ufffd")


def evil_run() -> Run:
    """A record in which everything that anybody else writes is hostile, as a notebook from a stranger may hold it."""
    call = ToolCall("c", kept("named"), {kept("key"): kept("value")})
    image = ImageContent(b"no image", 'image/png" onerror="window.pwned=7')
    said: list[Block] = [ThinkingContent(kept("reasoned")), ServerContent(kept("served"), {"data": kept("data")}), call]
    table = f"<table><tr><td>{kept('displayed')}</td></tr></table>"
    shown = {"output_type": "display_data", "data": {"text/html": table}}
    raised = {"output_type": "error", "ename": kept("error-name"), "evalue": kept("error-value")}
    result = ToolResultMessage("c", kept("named"), [TextContent(json.dumps([{kept("column"): kept("cell")}])), image])
    answer = AssistantMessage([TextContent(kept("answered")), image])
    steps: list[Step] = [
        UserStep(round=1, message=UserMessage(kept("asked")), time=1.0),
        RetryStep(round=1, attempt=1, delay=1.0, reason=kept("retried"), time=1.0),
        AssistantStep(round=1, message=AssistantMessage(said), started=1.0, ended=2.0),
        CallStep(round=1, call=call, started=1.0, state="error", output=[shown, raised], result=result, ended=2.0),
        UserStep(round=2, message=UserMessage(kept("steered"), "steering"), time=2.0),
        AssistantStep(round=2, message=answer, started=2.0, ended=3.0),
    ]
    late = [UserMessage(kept("late"), "steering")]
    fields: dict[str, Any] = {"model": kept("model"), "stop_reason": "error", "error": kept("failed"), "rounds": 2}
    nested = Run(run_id="n", steps=steps, undelivered=late, **fields)
    return Run(run_id="r", steps=steps, queued=late, children={"c": [nested]}, **fields)


ROOT = "[aria-label='Agent run']"
PLACES = ["asked", "reasoned", "named", "error-name", "error-value", "steered", "answered", "late", "failed"]


def test_a_hostile_record_in_a_notebook_of_a_stranger_does_nothing_and_can_be_read(page: Page, lab: Lab) -> None:
    watch, server = Watch(page), urlsplit(lab.url).netloc
    data, metadata = mime_bundle(evil_run())
    lab.write("stranger.ipynb", "1")
    notebook = json.loads((lab.folder / "stranger.ipynb").read_text())
    notebook["cells"][0]["outputs"] = [{"output_type": "display_data", "data": data, "metadata": metadata}]
    (lab.folder / "stranger.ipynb").write_text(json.dumps(notebook))

    page.goto(export(lab.folder / "stranger.ipynb").as_uri())
    assert_readable(read(page, ".jp-OutputArea-output"), *PLACES, "column", "cell")
    watch.assert_nothing_ran("cdnjs.cloudflare.com")

    Notebook(page, lab, "stranger.ipynb")
    page.locator(ROOT).wait_for()
    assert_readable(read(page, ROOT), *PLACES, "model", "retried", "value")
    watch.assert_nothing_ran("cdnjs.cloudflare.com", server)


def assert_readable(text: str, *places: str) -> None:
    assert [place for place in places if f"BEGIN-{place}" not in text] == []
    assert not set(text) & set("\x1b\x07\x9b\x00\u202e\u2066")


LONG = """
@function
def hold(until: str) -> str:
    "Print a long line, and wait for a file."
    print("x" * 1_000_000)
    while not Path(until).exists():
        time.sleep(0.05)
    return "done"
"""


def test_a_line_of_a_million_characters_is_drawn_at_once_and_can_be_read_whole(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    gate = threading.Event()
    half = "z" * 500_000
    wire.script = [
        Answer(pieces=[gate, *calls("long")]),
        Answer(pieces=[says(half), says(f" middle {half}"), says(" end"), *STOP]),
    ]
    notebook = lab.run(page, "long.ipynb", LONG, AGENT)
    notebook.box.wait_for()
    session = page.context.new_cdp_session(page)
    # In the time of the page's thread, which a busy machine does not change.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    gate.set()
    page.get_by_text("xxx").first.wait_for()
    lab.touch("long")
    notebook.box.wait_for(state="hidden")
    page.get_by_text("zzz end").first.wait_for()
    assert seconds_of_work(session) < 0.2
    page.locator(".assistant").get_by_text("more characters").click()
    assert " middle " in page.locator(".assistant").last.inner_text()


def seconds_of_work(session: CDPSession) -> float:
    """How long the page has worked since its performance is measured, without what Playwright asked of it."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    kinds = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")
    return sum(float(metric["value"]) for metric in metrics if metric["name"] in kinds)
