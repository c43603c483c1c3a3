"""Runs caught as they stand at one moment, and a plain page that shows such a record with the view's own code.

A page takes little time, so that every state can be looked at in every theme. What is asserted is for the tests to say.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from op_jupyter import RunError, Runtime, agentic_function, function
from op_jupyter.events import AgentEvent, AgentEventApproval, AgentEventMessageUpdate, AgentEventSteering, BlockDelta
from op_jupyter.messages import ToolCall
from op_jupyter.notebook.as_json import as_json
from op_jupyter.notebook.bundle import MIME_TYPE, mime_bundle
from op_jupyter.record import Run
from op_jupyter.testing import call, scripted
from op_jupyter.tools.registry import AgentTool

FRONT_END = Path(__file__).parents[2] / "labextension"
AXE = FRONT_END / "node_modules" / "axe-core" / "axe.min.js"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa', 'best-practice']}"
THEMES = Path(sys.prefix) / "share" / "jupyter" / "lab" / "themes" / "@jupyterlab"
ANSWER = """# The gaps

The gaps are **all** in cancelled flights, see `dep_time`:

| carrier | gaps |
|---------|-----:|
| UA      |  686 |

```python
flights[flights.dep_time.isna()]  # 8,255 of them
```

[The table](https://example.org/flights), and:

- the *first*
- the second"""


@function(expose=False)
def count_missing(column: str) -> dict[str, Any]:
    """Count the gaps of a column."""
    print("reading flights.csv\n" * 60)
    return {column: 8255, "of": [336_776, {"in": "rows"}]}


@function(expose=False)
def plot_delays(by: int) -> str:
    """Plot the delays."""
    raise ValueError("there is no such column")


@function(expose=False, requires_approval=True)
def delete(table: str, where: str) -> str:
    """Delete rows."""
    return f"{table} is gone"


@agentic_function(expose=False)
def research(topic: str, runtime: Runtime) -> str:
    """Look something up."""
    return runtime.exec(f"What of {topic}?", tools=[count_missing, delete])


def story() -> list[Any]:
    """What the model says: all kinds of calls, one that is nested and asks for approval, and an answer."""
    return [
        ["I count the *gaps* first.", call("count_missing", column="dep_time"), call("plot_delays", by=3)],
        [call("plot_delays", by="carrier"), call("nothing")],
        [call("research", topic="weather at JFK")],
        [call("count_missing", column="wind"), call("delete", table="weather", where="wind IS NULL " * 40)],
        "It was windy.",
        [call("delete", table="flights", where="dep_time IS NULL"), call("delete", table="planes", where="true")],
        ANSWER,
    ]


def states() -> dict[str, dict[str, Any]]:
    """Records by the name of the state that they show: as a live view has them, or where the run is over, as saved."""
    caught: dict[str, dict[str, Any]] = {}

    def watch(runtime: Runtime, names: dict[str, Callable[[AgentEvent, Run], bool]]) -> Callable[[AgentEvent], None]:
        def on_event(event: AgentEvent) -> None:
            assert runtime.under_way is not None
            run = runtime.under_way.run
            for name, is_it in names.items():
                if name not in caught and is_it(event, run):
                    caught[name] = as_json(run)

        return on_event

    def is_asked(nested: bool) -> Callable[[AgentEvent, Run], bool]:
        return lambda event, run: (
            isinstance(event, AgentEventApproval)
            and event.state == "asked"
            and (event.parent_call_id is not None) == nested
        )

    def allow(asked: ToolCall, tool: AgentTool) -> Any:
        if asked.arguments["table"] == "weather":
            runtime.steer("only 2013, please\nand only JFK")
            runtime.steer("and in Norwegian")
            return False
        return "always"

    tools = [count_missing, plot_delays, research, delete]
    runtime = Runtime(model=scripted(story()), tools=tools)
    runtime.exec(
        "Where are the gaps in `flights`, and why?",
        on_approval=allow,
        on_event=watch(
            runtime,
            {
                "streaming": lambda event, run: (
                    isinstance(event, AgentEventMessageUpdate)
                    and isinstance(event.update, BlockDelta)
                    and "686" in run.text
                ),
                "a nested approval": is_asked(nested=True),
                "an approval": is_asked(nested=False),
                "queued": lambda event, run: isinstance(event, AgentEventSteering) and len(run.queued) == 2,
                "a nested run": lambda event, run: event.parent_call_id is not None and bool(run.queued),
                "delivered": lambda event, run: run.rounds == 4 and not run.queued,
            },
        ),
    )
    caught["finished"] = saved(runtime)

    runtime = Runtime(model=scripted([[call("count_missing", column="a")]] * 3), tools=tools)
    runtime.exec("Again and again", max_iterations=2)
    caught["the cap"] = saved(runtime)
    reply: Any = ["I look.", call("count_missing", column="a")]
    runtime = Runtime(model=scripted([reply, RunError("The key was refused.", kind="auth")]), tools=tools)
    try:
        runtime.exec("Now")
    except RunError:
        caught["an error"] = saved(runtime)
    return caught


def saved(runtime: Runtime) -> dict[str, Any]:
    """The finished run as a saved notebook has it."""
    assert runtime.last_run is not None
    data: dict[str, Any] = mime_bundle(runtime.last_run)[0]
    return {**data[MIME_TYPE], "html": data["text/html"]}


def build(folder: Path) -> Path:
    """The view as a script, which defines `view`."""
    script = folder / "view.js"
    esbuild = FRONT_END / "node_modules" / ".bin" / "esbuild"
    entry = FRONT_END / "src" / "view" / "mount.ts"
    options = ["--bundle", "--format=iife", "--global-name=view", f"--outfile={script}", "--log-level=error"]
    subprocess.run([esbuild, entry, *options], check=True)
    return script


MOUNT = """([run, live]) => {
    const host = document.querySelector("main").appendChild(document.createElement("div"));
    window.asked = [];
    const transport = {
        link: {state: "live"},
        connect(listener) { this.listener = listener; listener.onLink(this.link); },
        steer: async (text) => {
            window.asked.push(["steer", text]);
            if (text.includes("lost")) throw new Error("The kernel did not answer within 5 s.");
            return "queued";
        },
        stop: async () => { window.asked.push(["stop"]); },
        approve: async (runId, callId, answer) => { window.asked.push(["approve", callId, answer]); },
        snapshot: async () => ({seq: 0, run}),
        dispose() {},
    };
    window.transport = transport;
    window.shown = view.mount(host, run, live ? transport : undefined);
}"""


class StillPage:
    """A page with nothing but the view in it, in one of JupyterLab's themes or in none."""

    def __init__(self, browser: Browser, script: Path) -> None:
        self.page: Page = browser.new_context(viewport={"width": 1000, "height": 900}).new_page()
        self._script = script

    def show(self, run: dict[str, Any], *, live: bool, theme: str | None = None) -> Page:
        """The run, drawn."""
        self._blank(theme)
        self.page.add_script_tag(path=self._script)
        self.page.evaluate(MOUNT, [run, live])
        return self.page

    def show_html(self, html: str, theme: str | None = None) -> Page:
        """HTML of a notebook's output."""
        self._blank(theme)
        self.page.evaluate("html => { document.querySelector('main').innerHTML = html }", html)
        return self.page

    def _blank(self, theme: str | None) -> None:
        style = "body { background: var(--jp-layout-color1, Canvas) } :root { color-scheme: light dark }"
        self.page.set_content(
            f'<!doctype html><html lang="en"><title>A run</title><style>{style}</style><main></main></html>'
        )
        if theme:
            self.page.add_style_tag(path=THEMES / f"theme-{theme}-extension" / "index.css")

    def audit(self) -> list[str]:
        """What axe finds wrong with the view, a line for each."""
        if not self.page.evaluate("'axe' in window"):
            self.page.add_script_tag(path=AXE)
        found = self.page.evaluate(f"axe.run('main > *', {RULES})")
        return [
            f"{rule['id']}: {node['target']} {node['failureSummary']} {node['html'][:200]}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]
