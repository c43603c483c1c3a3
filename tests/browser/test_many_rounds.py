"""A run of 1,050 rounds, nested ones among them, and 50,000 pieces of text: it costs at its end what it cost at first.

Measured: the bytes and the times of what leaves the kernel, what the page works for each message, and how long a click
takes until what it opened or closed is painted. Medians are compared, of the first and of the last patches, and of the
clicks in each third of the run: single ones hold what a busy machine let gather in 33 ms, or wait for its other work.
"""

from __future__ import annotations

import itertools
import json
from statistics import median
from typing import Any

from playwright.sync_api import Page

from tests.browser.lab import Lab, need_chromium

need_chromium()

MODEL = """
import json
import op_jupyter.notebook.channel as channel, op_jupyter.notebook.magic as magic
from op_jupyter import agentic_function
from op_jupyter.events import stream_of
from op_jupyter.messages import AssistantMessage, TextContent, ToolCall
from op_jupyter.providers import Model

ROUNDS, NESTED = 50, 20
WORDS = " ".join(f"word{n}" for n in range(48))
begun = []

@function
def look(at: int) -> str:
    "Look at something."
    return f"{at} is fine"

@agentic_function
def research(topic: int, runtime) -> str:
    "Find out about a topic."
    return runtime.exec(f"Nested: {topic}")

def reply(request):
    done = sum(isinstance(message, AssistantMessage) for message in request.messages)
    begun.append(time.time())
    if done == ROUNDS - 1:
        return AssistantMessage([TextContent(WORDS + " the end")], "stop")
    is_root = not request.messages[0].text.startswith("Nested")
    # The nested runs are spread over the whole.
    name, argument = ("research", "topic") if is_root and done % 5 < 2 else ("look", "at")
    return AssistantMessage([TextContent(WORDS), ToolCall(f"c{done}", name, {argument: done})], "tool_use")

def stream(request):
    time.sleep(0.01)
    yield from stream_of(reply(request))

magic.resolve = lambda name: Model("many", "rounds", stream)

sent = []
send_to = channel.Channel._send_to
def noted(self, comms, message):
    if "batches" in message:
        sent.append((time.time(), len(json.dumps(message))))
    send_to(self, comms, message)
channel.Channel._send_to = noted
"""
AGENT = "%%agent --tools look,research\nGo through it all."
ROUNDS = 1050
NOTE_CLICKS = """() => {
    window.waited = [];
    addEventListener("click", ({timeStamp}) => requestAnimationFrame(() => {
        // A task of its own comes after the frame has been painted.
        const {port1, port2} = new MessageChannel();
        port1.onmessage = () => window.waited.push(performance.now() - timeStamp);
        port2.postMessage(null);
    }), true);
}"""


def test_a_run_of_a_thousand_rounds_costs_at_its_end_what_it_cost_at_first(page: Page, lab: Lab) -> None:
    notebook = lab.run(page, "many.ipynb", MODEL, AGENT)
    card = page.locator(".call > summary").first
    card.wait_for()
    page.evaluate(NOTE_CLICKS)
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable")
    busy: list[tuple[float, float]] = []
    while notebook.box.is_visible():
        # It need not stand still.
        card.click(force=True)
        metrics: list[dict[str, Any]] = browser.send("Performance.getMetrics")["metrics"]
        worked = {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]
        busy.append((page.evaluate("Date.now() / 1000"), worked))
        page.wait_for_timeout(250)
    sent = json.loads(notebook.kernel_value("json.dumps(sent)"))
    waited: list[float] = page.evaluate("window.waited")
    third = len(waited) // 3
    clicks = [median(part) for part in (waited[:third], waited[third:-third], waited[-third:])]
    assert notebook.kernel_value("len(begun)") == ROUNDS

    sizes = [size for _, size in sent]
    gaps = [after - before for (before, _), (after, _) in itertools.pairwise(sent)]
    costs = []
    for (before, worked_before), (after, worked) in itertools.pairwise(busy):
        messages = sum(before < time <= after for time, _ in sent)
        if messages:
            costs.append((worked - worked_before) / messages)
    print(
        f"{len(sent)} patches, {median(sizes[:20])} bytes at first and {median(sizes[-20:])} at last; the page worked "
        f"{median(costs[1:11]) * 1000:.1f} ms a patch at first and {median(costs[-10:]) * 1000:.1f} at last; gaps of "
        f"at least {min(gaps) * 1000:.0f} ms; {len(waited)} clicks were seen after {median(waited):.0f} ms, nine in ten "
        f"within {sorted(waited)[len(waited) * 9 // 10]:.0f}, the last third after {clicks[-1]:.0f}"
    )
    assert min(gaps) >= 0.033
    assert median(sizes[-20:]) <= 1.5 * median(sizes[:20])
    assert median(costs[-10:]) <= 1.5 * median(costs[1:11])
    assert max(clicks) <= 100
