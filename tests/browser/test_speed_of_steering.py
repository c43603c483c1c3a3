"""How soon a message that is sent is in the kernel, while a function blocks the main thread."""

from __future__ import annotations

import json
from statistics import median

from playwright.sync_api import Page, expect

from tests.browser.lab import AGENT, STOP, Lab, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

MESSAGES = 20
WITHIN = 100
"""Milliseconds, in the median."""

EVENTS = "import os\nos.environ['OP_JUPYTER_EVENTS'] = 'steering.jsonl'"

# The page and the kernel look at the same clock. Of a key or a click, the time is that of the event itself.
NOTE_WHAT_IS_SENT = """() => {
    window.sent = [];
    const note = ({timeStamp}) => window.sent.push(performance.timeOrigin + timeStamp);
    document.addEventListener('keydown', (event) => event.key === 'Enter' && note(event), true);
    document.addEventListener('click', note, true);
}"""


def test_a_message_is_in_the_kernel_within_100_ms_while_a_function_blocks_it(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    wire.script = [Answer(pieces=calls("all-sent")), Answer(pieces=[says("The end."), *STOP])]
    notebook = lab.run(page, "speed.ipynb", EVENTS, AGENT)
    notebook.text("Running hold.").wait_for()
    expect(notebook.box).to_be_editable()
    page.evaluate(NOTE_WHAT_IS_SENT)
    for n in range(MESSAGES):
        notebook.box.fill(f"message {n}")
        if n % 2:
            page.get_by_role("button", name="Send").click()
        else:
            notebook.box.press("Enter")
        expect(notebook.text("queued")).to_have_count(n + 1)
    sent = page.evaluate("window.sent")
    lab.touch("all-sent")
    notebook.text("The end.").wait_for()
    events = [json.loads(line) for line in (lab.folder / "steering.jsonl").read_text().splitlines()]
    queued = [event["time"] * 1000 for event in events if (event["kind"], event.get("state")) == ("steering", "queued")]
    took = [there - here for here, there in zip(sent, queued, strict=True)]
    print(f"queued after {median(took):.0f} ms in the median, {max(took):.0f} ms at the most")
    assert median(took) <= WITHIN
