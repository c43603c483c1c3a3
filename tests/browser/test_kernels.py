"""Kernels that are restarted, that die, that are two at once, and those that take no messages while they are busy."""

from __future__ import annotations

import json
import os
import signal
import sys

from playwright.sync_api import Page, expect

from tests.browser.lab import AGENT, SETUP, STOP, Lab, Notebook, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

DEAF = """
@function
def hold(until: str) -> str:
    "Hear no interrupt, like code outside of Python."
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
NO_SUBSHELLS = """
from ipykernel.kernelapp import IPKernelApp

class App(IPKernelApp):
    def init_control(self, context):
        super().init_control(context)
        self.shell_channel_thread = None

App.launch_instance()
"""
KERNEL_OF_PAGE = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
GONE = "The kernel was restarted: this run is gone."
LATE = "This kernel takes no messages while a cell runs: they will arrive when the cell ends."


def restart(notebook: Notebook) -> None:
    """Restart the kernel as a person does."""
    notebook.command("notebook:restart-kernel")
    notebook.page.get_by_role("button", name="Confirm Kernel Restart").click()


def offers_nothing(notebook: Notebook) -> None:
    """There is no button that would do nothing, and no box to type in."""
    expect(notebook.page.get_by_label("Control of the run").get_by_role("button", disabled=False)).to_have_count(0)
    expect(notebook.box).not_to_be_editable()


def test_every_page_says_that_a_run_is_gone_when_its_kernel_is_restarted(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    wire.script = [Answer(pieces=[says("Let me see."), *calls("never")])]
    first = lab.run(page, "gone.ipynb", DEAF, AGENT)
    first.text("running").wait_for()
    second = Notebook(page.context.new_page(), lab, "gone.ipynb")
    second.text("running").wait_for()
    restart(first)
    for tab in first, second:
        tab.text(GONE).wait_for()
        offers_nothing(tab)


def test_a_run_that_a_restart_could_interrupt_is_kept_as_far_as_it_came(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [Answer(pieces=[says("Let me see."), *calls("never")])]
    notebook = lab.run(page, "interrupted.ipynb")
    notebook.text("running").wait_for()
    restart(notebook)
    notebook.text("Stopped.").wait_for()
    offers_nothing(notebook)
    saved = notebook.saved("Let me see.", "interrupted")
    assert '"live"' not in saved


def test_a_page_says_that_a_run_is_gone_when_its_kernel_dies(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [Answer(pieces=[says("Let me see."), *calls("never")])]
    notebook = lab.run(page, "dies.ipynb", "import os; Path('pid').write_text(str(os.getpid()))", AGENT)
    notebook.text("running").wait_for()
    os.kill(int((lab.folder / "pid").read_text()), signal.SIGKILL)
    notebook.text(GONE).wait_for()
    assert notebook.text("Let me see.").count() == 1
    offers_nothing(notebook)


def test_of_two_notebooks_in_one_window_each_message_steers_its_own(page: Page, lab: Lab, wire: WireServer) -> None:
    shown = page.locator(".jp-NotebookPanel:visible")
    wire.script = [Answer(pieces=calls("one"))]
    notebook = lab.run(page, "one.ipynb")
    shown.get_by_text("running", exact=True).wait_for()
    wire.script = [Answer(pieces=calls("two"))]
    lab.write("two.ipynb", SETUP, AGENT)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:open', {path: 'two.ipynb'})")
    page.wait_for_function("window.jupyterapp.shell.currentWidget?.context?.path === 'two.ipynb'")
    notebook.wait_for_kernel()
    notebook.command("notebook:run-all-cells")
    shown.get_by_text("running", exact=True).wait_for()
    for name in "one", "two":
        page.get_by_role("tab", name=f"{name}.ipynb").click()
        box = shown.get_by_label("Message to the agent")
        box.fill(f"for {name}")
        box.press("Enter")
        shown.get_by_text("queued", exact=True).wait_for()
    for name in "two", "one":
        wire.script = [Answer(pieces=[says(f"This is {name}."), *STOP])]
        lab.touch(name)
        page.get_by_role("tab", name=f"{name}.ipynb").click()
        shown.get_by_text(f"This is {name}.", exact=True).wait_for()
        assert wire.asked[-1].body["messages"][-1] == {"role": "user", "content": f"for {name}"}


def test_where_jupyterlab_keeps_comms_off_subshells_messages_arrive_all_the_same(
    page: Page, lab: Lab, wire: WireServer
) -> None:
    settings = lab.folder / ".jupyter/lab/@jupyterlab/apputils-extension/kernels-settings.jupyterlab-settings"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"commsOverSubshells": "disabled"}))
    try:
        wire.script = [Answer(pieces=calls("disabled")), Answer(pieces=[says("Yes."), *STOP])]
        notebook = lab.run(page, "disabled.ipynb")
        notebook.text("running").wait_for()
        assert page.evaluate(f"{KERNEL_OF_PAGE}.commsOverSubshells") == "disabled"
        notebook.steer("still there?")
        notebook.text("queued").wait_for()
        lab.touch("disabled")
        notebook.text("Yes.").wait_for()
        assert wire.asked[-1].body["messages"][-1] == {"role": "user", "content": "still there?"}
    finally:
        settings.unlink()


def test_where_a_kernel_has_no_subshells_the_box_says_so_and_stop_works(page: Page, lab: Lab, wire: WireServer) -> None:
    kernel = lab.folder / ".jupyter/data/kernels/no-subshells/kernel.json"
    kernel.parent.mkdir(parents=True)
    argv = [sys.executable, "-c", NO_SUBSHELLS, "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "no-subshells", "language": "python"}))
    wire.script = [Answer(pieces=[says("Let me see."), *calls("never")])]
    notebook = lab.run(page, "late.ipynb", kernel="no-subshells")
    notebook.text(LATE).wait_for()
    expect(notebook.box).not_to_be_editable()
    notebook.stop.click()
    notebook.text("Stopped.").wait_for()
    notebook.text("Let me see.").wait_for()
    assert '"live"' not in notebook.saved("Let me see.", "interrupted")
