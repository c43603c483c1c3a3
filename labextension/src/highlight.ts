/** Agent cells look like the prose that they are. Nothing of it is in the notebook's file. */

import type { JupyterFrontEndPlugin } from "@jupyterlab/application";
import type { ICodeCellModel } from "@jupyterlab/cells";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { forEachCodeCell, isAgentCell } from "./cells";

/** Markdown, as in the cells that have nothing else. */
const PROSE = "text/x-ipythongfm";

export const highlightPlugin: JupyterFrontEndPlugin<void> = {
  id: "op_jupyter:highlight",
  description: "Highlights agent cells as prose.",
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_app, tracker: INotebookTracker) => {
    tracker.forEach((panel) => void highlightCells(panel));
    tracker.widgetAdded.connect((_, panel) => void highlightCells(panel));
  },
};

async function highlightCells(panel: NotebookPanel): Promise<void> {
  await panel.context.ready;
  forEachCodeCell(panel.context, (cell) => {
    const update = () => highlight(cell, panel.content.codeMimetype);
    // The notebook gives all of its cells the language of its kernel, whenever that changes.
    cell.mimeTypeChanged.connect(update);
    cell.sharedModel.changed.connect((_, { sourceChange }) => sourceChange && update());
    update();
  });
}

function highlight(cell: ICodeCellModel, code: string): void {
  if (isAgentCell(cell.sharedModel.source)) {
    cell.mimeType = PROSE;
  } else if (cell.mimeType === PROSE) {
    cell.mimeType = code;
  }
}
