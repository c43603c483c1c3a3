"""The steer box under the keys of a real browser, which alone knows where a line is wrapped."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.lab import need_chromium
from tests.browser.still import StillPage

need_chromium()

WRAPPED = "a word and another " * 20


def shown(still: StillPage, records: dict[str, dict[str, Any]], *sent: str) -> Locator:
    """The box of a run, from which these messages were sent."""
    box = still.show(records["a nested run"], live=True, theme="light").get_by_label("Message to the agent")
    for text in sent:
        box.fill(text)
        box.press("Enter")
    return box


def test_the_arrow_keys_move_in_a_long_text_and_go_through_what_was_sent_at_its_ends(
    still: StillPage, records: dict[str, dict[str, Any]]
) -> None:
    box = shown(still, records, "first", WRAPPED.strip())
    box.press_sequentially("half a sen")
    box.press("ArrowUp")
    expect(box).to_have_value(WRAPPED.strip())
    # It is wrapped into lines, through which the cursor goes first.
    box.press("ArrowUp")
    still.page.wait_for_timeout(50)
    expect(box).to_have_value(WRAPPED.strip())
    for _ in range(9):
        box.press("ArrowUp")
    expect(box).to_have_value("first")
    for _ in range(12):
        box.press("ArrowDown")
    expect(box).to_have_value("half a sen")
    assert box.evaluate("box => box.selectionStart") == len("half a sen")


def test_the_box_grows_with_the_text_up_to_a_part_of_the_window_and_shrinks_again(
    still: StillPage, records: dict[str, dict[str, Any]]
) -> None:
    box = shown(still, records)

    def height() -> float:
        tall: float = box.evaluate("box => box.getBoundingClientRect().height")
        return tall

    one = height()
    box.fill("one\ntwo\nthree")
    three = height()
    assert three > 1.8 * one
    box.fill(WRAPPED)
    assert height() > one
    box.fill("line\n" * 200)
    assert three < height() <= 0.41 * 900
    box.press("Enter")
    assert height() == one


def test_a_message_that_was_lost_is_taken_back_changed_and_sent_again(
    still: StillPage, records: dict[str, dict[str, Any]]
) -> None:
    box = shown(still, records, "lost for now")
    page = still.page
    page.get_by_text("not delivered: The kernel did not answer within 5 s.", exact=True).wait_for()
    page.get_by_role("button", name="Take back: lost for now").click()
    expect(box).to_be_focused()
    box.press("Control+A")
    page.keyboard.type("found")
    box.press("Enter")
    expect(page.locator(".sent li").last).to_have_text("found queued")
    assert page.evaluate("asked") == [["steer", "lost for now"], ["steer", "found"]]
