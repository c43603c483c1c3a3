/** The code cells of a notebook that is open, and which of them are agent cells. */

import type { ICellModel, ICodeCellModel } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";

/** Whether IPython takes a cell with this source as an agent cell: what stands before may be white space only. */
export function isAgentCell(source: string): boolean {
  return /^\s*%%agent( |\s*\n|$)/.test(source);
}

/** A notebook that is open, in one view or in several. */
export type Notebook = NotebookPanel["context"];

export function codeCells(notebook: Notebook): ICodeCellModel[] {
  return [...notebook.model.cells].filter(isCode);
}

/** Does `act` to every code cell of a notebook, now and when it is added. */
export function forEachCodeCell(notebook: Notebook, act: (cell: ICodeCellModel) => void): void {
  codeCells(notebook).forEach(act);
  notebook.model.cells.changed.connect((_, { newValues, type }) => {
    if (type !== "move") {
      newValues.filter(isCode).forEach(act);
    }
  });
}

function isCode(cell: ICellModel): cell is ICodeCellModel {
  return cell.type === "code";
}
