"""A message into a run that draws: the figure is shown whole, and so is the one of the cell before."""

from __future__ import annotations

import base64
import io

from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import AGENT, STOP, Lab, calls, need_chromium, says
from tests.providers.wire_server import Answer, WireServer

need_chromium()

GREEN, RED, BLUE = (0, 255, 0), (255, 0, 0), (0, 0, 255)

DRAWN_BEFORE = """
import matplotlib.pyplot as plt
plt.axvspan(0, 1, color="#00ff00");
"""
HALF_BY_HALF = """
@function
def hold(until: str) -> str:
    "Draw a figure, and block the main thread when half of it is drawn."
    plt.axvspan(0, 1, color="#ff0000")
    print("Half of it is drawn.")
    while not Path(until).exists():
        time.sleep(0.05)
    plt.axvspan(1, 2, color="#0000ff")
    return "drawn"
"""


def colours(figure: Locator) -> set[tuple[int, int, int]]:
    """Which of ours there are in an image on the page."""
    _, png = (figure.get_attribute("src") or "").split("base64,")
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    return {GREEN, RED, BLUE} & {colour for _, colour in image.getcolors(image.width * image.height) or []}


def test_a_message_into_a_half_drawn_figure_loses_neither_half(page: Page, lab: Lab, wire: WireServer) -> None:
    wire.script = [Answer(pieces=calls("half-drawn")), Answer(pieces=[says("The end."), *STOP])]
    notebook = lab.run(page, "figures.ipynb", DRAWN_BEFORE, HALF_BY_HALF, AGENT)
    before, during = notebook.cell(1).locator("img"), notebook.cell(3).locator("img")
    notebook.text("Half of it is drawn.").wait_for()
    expect(notebook.box).to_be_editable()
    # All that the first message sets off is over when the second one is queued.
    for n, message in enumerate(["Make the second half blue.", "Please."]):
        notebook.steer(message)
        expect(notebook.text("queued")).to_have_count(n + 1)
    lab.touch("half-drawn")
    expect(during).to_have_count(1)
    assert colours(during) == {RED, BLUE}
    expect(before).to_have_count(1)
    assert colours(before) == {GREEN}
