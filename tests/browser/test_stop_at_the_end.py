"""Stop that is clicked just as the cell ends anyway: no cell loses its reply, and none that follows is hit."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.lab import AGENT, STOP, Lab, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

STOPPED = ["RunAborted", "ok"]
NOT_STOPPED = ["ok", "ok"]
"""The replies to the agent cell and to what the kernel does next."""

UNTIL_A_MESSAGE = """
from op_jupyter import default_runtime

@function
def hold(until: str) -> str:
    "Block the main thread until somebody says something."
    while not default_runtime().under_way.run.queued:
        time.sleep(0.001)
    time.sleep(0.02)
    return "done"
"""
# The cell ends with the function, in which a stop is a signal.
ENDS_WITH_THE_FUNCTION = "%%agent --max-iterations 1\nDo it, please."

# What each test does with a cell in the page, again and again.
IN_THE_PAGE = """async ({stops, index}) => {
    const {commands, shell} = window.jupyterapp;
    const {content: notebook, sessionContext} = shell.currentWidget;
    const {kernel} = sessionContext.session;
    const cell = notebook.widgets[index];
    // Else the kernel drops what waits when the cell ends with an error.
    cell.model.setMetadata('tags', ['raises-exception']);

    let replies = [];
    kernel.anyMessage.connect((_, {msg}) => {
        if (msg.header.msg_type === 'execute_reply') {
            replies.push(msg.content.ename ?? msg.content.status);
        }
    });
    const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
    const until = async (isSo) => {
        const end = Date.now() + 10_000;
        while (!isSo() && Date.now() < end) {
            await sleep(2);
        }
    };
    const find = (selector) =>
        [...cell.node.querySelectorAll('*')].map((node) => node.shadowRoot?.querySelector(selector)).find(Boolean);
    const run = () => {
        replies = [];
        notebook.activeCellIndex = index;
        commands.execute('notebook:run-cell');
    };
    const all = [];
"""

# A message lets the cell end, and Stop follows it by some milliseconds: later after a stop that came before the end,
# and sooner after one that came too late. What the kernel is to do next waits already.
AROUND_THE_END = (
    IN_THE_PAGE
    + """    let delay = 20;
    while (all.length < stops) {
        run();
        await until(() => find('.status')?.textContent === 'Running hold.' && !find('textarea').readOnly);
        kernel.requestExecute({code: 'time.sleep(0.02)'});
        const [box, send, stop] = ['textarea', '.send', '.stop'].map(find);
        box.value = 'Go on.';
        send.click();
        await sleep(delay + 4 * Math.random());
        stop.click();
        await until(() => replies.length === 2);
        all.push(replies);
        delay = Math.max(0, delay + (replies[0] === 'RunAborted' ? 1 : -1));
    }
    return all;
}"""
)

AS_SOON_AS_THERE_IS_A_BUTTON = (
    IN_THE_PAGE
    + """    while (all.length < stops) {
        const before = find('.stop');
        run();
        await until(() => find('.stop') && find('.stop') !== before);
        kernel.requestExecute({code: 'time.sleep(0.3)'});
        find('.stop').click();
        await until(() => replies.length === 2);
        all.push(replies);
    }
    return all;
}"""
)


def test_200_stops_around_the_end_of_a_cell_lose_no_reply_and_hit_no_later_cell(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    wire.script = [Answer(pieces=calls("never")) for _ in range(201)]
    notebook = lab.run(page, "stops.ipynb", UNTIL_A_MESSAGE, ENDS_WITH_THE_FUNCTION)
    notebook.text("Running hold.").wait_for()
    notebook.steer("Go on.")
    expect(notebook.cell(2)).to_contain_text("[3]:")
    replies = page.evaluate(AROUND_THE_END, {"stops": 200, "index": 2})
    stopped, not_stopped = replies.count(STOPPED), replies.count(NOT_STOPPED)
    print(f"{stopped} cells were stopped, {not_stopped} had ended")
    assert [both for both in replies if both not in (STOPPED, NOT_STOPPED)] == []
    # They did fall around the end.
    assert min(stopped, not_stopped) > 20


def test_stop_in_a_run_that_is_over_before_its_view_is_connected_hits_no_later_cell(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    wire.script = [Answer(pieces=[says("Hello."), *STOP]) for _ in range(11)]
    notebook = lab.run(page, "early.ipynb", AGENT)
    expect(notebook.cell(1)).to_contain_text("[2]:")
    replies = page.evaluate(AS_SOON_AS_THERE_IS_A_BUTTON, {"stops": 10, "index": 1})
    assert [both for both in replies if both not in (STOPPED, NOT_STOPPED)] == []
