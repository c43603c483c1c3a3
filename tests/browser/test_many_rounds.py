"""A run of 1,050 rounds, nested ones among them, and 50,000 pieces of text: it costs at its end what it cost at first.

Measured: the bytes and the times of what leaves the kernel, how long the page is busy with each message, how long a
click takes until what it opened or closed is painted, and the file at the end. The first and the last reply of the run
come in twenty equal pieces, so that patches of one kind are compared; all else comes as fast as it can. Medians are
compared, since any one message or click may have to wait for what else a busy machine does.
"""

from __future__ import annotations

import itertools
import json
from statistics import median

from playwright.sync_api import Page, expect

from tests.browser.lab import Lab, need_chromium

need_chromium()

MODEL = """
import json
import op_jupyter.notebook.channel as channel, op_jupyter.notebook.magic as magic
from op_jupyter import agentic_function
from op_jupyter.events import BlockDelta, stream_of
from op_jupyter.messages import AssistantMessage, TextContent, ToolCall
from op_jupyter.providers import Model

ROUNDS, PIECES = 50, 20
WORDS = " ".join(f"word{n}" for n in range(48)) + ". "
begun = []
streamed = 0

@function
def look(at: int) -> str:
    "Look at something."
    return f"{at} is fine"

@agentic_function
def research(topic: int, runtime) -> str:
    "Find out about a topic."
    return runtime.exec(f"Nested: {topic}")

def reply(done, is_root):
    if done == ROUNDS - 1:
        return AssistantMessage([TextContent(WORDS * (PIECES if is_root else 1) + "The end.")], "stop")
    # The nested runs are spread over the whole.
    name, argument = ("research", "topic") if is_root and done % 5 < 2 else ("look", "at")
    text = TextContent(WORDS * (PIECES if is_root and not done else 1))
    return AssistantMessage([text, ToolCall(f"c{done}", name, {argument: done})], "tool_use")

def in_equal_pieces(events, gate):
    Path(f"{gate}-asked").touch()
    while not Path(gate).exists():
        time.sleep(0.02)  # the test says when by a file, as it does to `hold`
    for event in events:
        if not isinstance(event, BlockDelta):
            yield event
        elif event.text == "word0 ":
            yield BlockDelta(event.index, WORDS)
            time.sleep(0.05)  # longer than the 33 ms between patches, so that each piece has one of its own

def stream(request):
    global streamed
    begun.append(time.time())
    time.sleep(0.01)  # a model takes time, in which the page can be clicked
    done = sum(isinstance(message, AssistantMessage) for message in request.messages)
    is_root = not request.messages[0].text.startswith("Nested")
    events = list(stream_of(reply(done, is_root)))
    if is_root and done in (0, ROUNDS - 1):
        events = in_equal_pieces(events, "last" if done else "first")
    for event in events:
        streamed += isinstance(event, BlockDelta)
        yield event

magic.resolve = lambda name: Model("many", "rounds", stream)

sent = []
send_to = channel.Channel._send_to
def noted(self, comms, message):
    if "batches" in message:
        sent.append(time.time())
    send_to(self, comms, message)
channel.Channel._send_to = noted
"""
AGENT = "%%agent --tools look,research\nGo through it all."
ROUNDS, COMPARED = 1050, 18
"""Of the twenty pieces, one or two may come together with something else."""

NOTE_MESSAGES = """
window.handled = [];
const {set} = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
Object.defineProperty(WebSocket.prototype, "onmessage", {set(handle) {
    set.call(this, handle && function (event) {
        const begun = performance.now();
        handle.call(this, event);
        // A task of its own comes after all that this one brought about.
        const {port1, port2} = new MessageChannel();
        port1.onmessage = () => window.handled.push([event.data, performance.now() - begun]);
        port2.postMessage(null);
    });
}});
"""
# Each connection of the page to the kernel gets each message.
PATCHES = """() => {
    const patches = new Map();
    for (const [data, took] of window.handled) {
        const text = typeof data === "string" ? data : new TextDecoder().decode(data);
        const first = text.match(/"batches": ?\\[\\{"first": ?(\\d+)/)?.[1];
        if (first) {
            const ops = [...text.matchAll(/"op": ?"(\\w+)"/g)].map(([, op]) => op);
            const patch = patches.get(first) ?? {bytes: text.length, ops, took: 0};
            patches.set(first, {...patch, took: patch.took + took});
        }
    }
    return [...patches.values()];
}"""
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
    page.add_init_script(NOTE_MESSAGES)
    notebook = lab.run(page, "many.ipynb", MODEL, AGENT)
    expect(notebook.box).to_be_editable()
    lab.touch("first")
    card = page.locator(".call > summary").first
    card.wait_for()
    page.evaluate(NOTE_CLICKS)
    while not (lab.folder / "last-asked").exists():
        # It need not stand still.
        card.click(force=True)
        page.wait_for_timeout(250)
    waited: list[float] = page.evaluate("window.waited")
    lab.touch("last")
    notebook.box.wait_for(state="hidden")
    patches = page.evaluate(PATCHES)
    sent = json.loads(notebook.kernel_value("json.dumps(sent)"))
    assert notebook.kernel_value("len(begun), streamed") >= (ROUNDS, 50_000)

    gaps = [after - before for before, after in itertools.pairwise(sent)]
    third = len(waited) // 3
    clicks = [median(part) for part in (waited[:third], waited[third:-third], waited[-third:])]
    pieces = [patch for patch in patches if patch["ops"] == ["append"]]
    first, last = pieces[:COMPARED], pieces[-COMPARED:]
    bytes_of = [median(patch["bytes"] for patch in part) for part in (first, last)]
    took = [median(patch["took"] for patch in part) for part in (first, last)]
    print(
        f"{len(patches)} patches, {len(pieces)} of one piece of text: {bytes_of} bytes and {took} ms of the page at "
        f"first and at last; gaps of at least {min(gaps) * 1000:.0f} ms; {len(waited)} clicks were seen after {clicks} "
        f"ms, nine in ten within {sorted(waited)[len(waited) * 9 // 10]:.0f}"
    )
    assert len(pieces) >= 2 * COMPARED
    assert min(gaps) >= 0.033
    assert bytes_of[1] <= 1.5 * bytes_of[0]
    assert took[1] <= 1.5 * took[0]
    assert max(clicks) <= 100
    assert len(notebook.saved('"stop_reason": "stop"')) < 5_000_000
