/** Where a run is on the page: whether a person sees it there, and the way to it. */

import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { CodeCell } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { LiveRun } from "./live_run";
import { runIdOf } from "./outputs";
import type { Runs } from "./runs";

/** Pixels: less of a run is not seen. */
const A_LINE = 20;

/** Whether some of the run is in sight; with `"end"`, whether its end is, where the run asks and answers. */
export function isSeen(runs: Runs, run: LiveRun, part: "some" | "end" = "some"): boolean {
  return !document.hidden && runs.panelsOf(run).some((panel) => panel.isVisible && isInSight(panel, run, part));
}

function isInSight(panel: NotebookPanel, run: LiveRun, part: "some" | "end"): boolean {
  const node = cellOf(panel, run)?.outputArea.node;
  if (!node?.isConnected) {
    return false;
  }
  const notebook = panel.content.node.getBoundingClientRect();
  const [top, bottom] = [Math.max(0, notebook.top), Math.min(window.innerHeight, notebook.bottom)];
  const output = node.getBoundingClientRect();
  return part === "some"
    ? Math.min(bottom, output.bottom) - Math.max(top, output.top) >= A_LINE
    : output.bottom > top && output.bottom <= bottom + A_LINE;
}

/** Shows the run, and leaves the focus on its cell. */
export async function goTo(app: JupyterFrontEnd, runs: Runs, run: LiveRun): Promise<void> {
  if (await show(app, runs, run)) {
    runs.panelsOf(run)[0]?.activate();
  }
}

/** Brings the notebook to the front, and the end of the run into sight; its cell, which is returned, becomes the active one. */
export async function show(app: JupyterFrontEnd, runs: Runs, run: LiveRun): Promise<CodeCell | undefined> {
  const [panel] = runs.panelsOf(run);
  const cell = panel && cellOf(panel, run);
  if (!panel || !cell) {
    return undefined;
  }
  const { content: notebook } = panel;
  notebook.mode = "command";
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  notebook.deselectAll();
  if (app.shell.currentWidget !== panel) {
    app.shell.activateById(panel.id);
  }
  // What is activated scrolls, too, and only one can.
  await frame();
  await notebook.scrollToItem(notebook.activeCellIndex, "smart").catch(() => undefined);
  // In JupyterLab's windowing mode the page gets a cell only when that is in sight.
  for (let frames = 0; frames < 60 && !cell.node.checkVisibility(); frames++) {
    await frame();
  }
  if (!isInSight(panel, run, "end")) {
    cell.outputArea.node.scrollIntoView({ block: "end" });
  }
  return cell;
}

function frame(): Promise<unknown> {
  return new Promise(requestAnimationFrame);
}

/** The cell that shows the run, or, where its output was cleared, the one that the kernel says it is of. */
function cellOf(panel: NotebookPanel, { runId, cellId }: LiveRun): CodeCell | undefined {
  const cells = panel.content.widgets.filter((cell): cell is CodeCell => cell.model.type === "code");
  return cells.find(({ model }) => shows(model.outputs, runId)) ?? cells.find(({ model }) => model.id === cellId);
}

function shows(outputs: CodeCell["model"]["outputs"], runId: string | null): boolean {
  return Array.from({ length: outputs.length }, (_, index) => runIdOf(outputs.get(index).metadata)).some(
    (shown) => shown !== undefined && shown === runId,
  );
}
