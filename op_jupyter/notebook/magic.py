"""`%%agent`: a cell whose text is handed to `Runtime.exec`, with the notebook's functions as tools.

Options become arguments of `exec`, and its failures one line in the cell; running and drawing are done elsewhere.
"""

from __future__ import annotations

import keyword
import os
import shutil
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from traitlets import Unicode

from op_jupyter.context import _current_run, host
from op_jupyter.current import set_default_runtime
from op_jupyter.errors import RunError
from op_jupyter.notebook.approval import ask_in_card, ask_with_input
from op_jupyter.notebook.bundle import mime_bundle
from op_jupyter.notebook.channel import register
from op_jupyter.notebook.host import captured_output, expand_names, tools_named
from op_jupyter.notebook.live import LiveOutput, is_watched
from op_jupyter.notebook.static_text import WIDTH
from op_jupyter.providers import Model, ToolChoice, default_model, list_models, resolve
from op_jupyter.providers.replay import Recorder
from op_jupyter.record import Run
from op_jupyter.runtime import Runtime


@magics_class
class AgentMagics(Magics):
    """`%%agent` and `%agent`, with their defaults in `%config AgentMagics`."""

    model = Unicode("", help="The model to ask, as provider:model; empty for what the environment has.").tag(
        config=True
    )

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell = shell
        self.runtime = Runtime()
        self.runtime.capture = lambda emit_output: captured_output(shell, emit_output)
        set_default_runtime(self.runtime)

    @magic_arguments()
    @argument("--model", "-m", metavar="PROVIDER:MODEL", help="The model to ask, such as openai:gpt-5-mini or local:")
    @argument("--tools", "-t", metavar="NAMES", help="Exactly these functions, decorated or not: a,b (none: '')")
    @argument("--out", "-o", metavar="NAME", default="_agent", help="The name that the answer is bound to")
    @argument("--max-iterations", type=int, metavar="N", help="How often the model is asked, 50 times at the most")
    @argument("--tool-choice", metavar="CHOICE", default="auto", help="auto, required, none, or a function's name")
    @argument("--record", metavar="FILE", help="Keep what the model says in a cassette, for replay:FILE")
    @cell_magic
    def agent(self, line: str, cell: str) -> None:
        """Ask a model, which may call the functions of this notebook, and show the run.

        `{name}` in the text is replaced by the value of a variable. The answer is bound to `_agent`, or to --out NAME.
        """
        options = _parsed(self.agent, line)
        namespace = self._shell.user_ns
        if not options.out.isidentifier() or keyword.iskeyword(options.out):
            raise UsageError(f"--out takes a name, not {options.out!r}")
        if options.max_iterations is not None and options.max_iterations < 1:
            raise UsageError(f"--max-iterations takes a number from 1, not {options.max_iterations}")
        if not cell.strip():
            raise UsageError("There is nothing to ask: write the question below %%agent.")
        run_before = self.runtime.last_run
        # One that a function of another run started is drawn in the call of that function.
        is_nested = _current_run.get() is not None
        live = LiveOutput(self._shell, self.runtime) if is_watched(self._shell) and not is_nested else None
        try:
            tools = None if options.tools is None else tools_named(_names(options.tools), namespace)
            model, recorder = self._model(options.model, options.record)
            namespace[options.out] = self.runtime.exec(
                expand_names(cell, namespace).strip(),
                model=model,
                tools=tools,
                tools_source="notebook",
                tool_choice=_tool_choice(options.tool_choice),
                max_iterations=options.max_iterations,
                on_event=live.on_event if live else None,
                on_approval=ask_in_card(live.channel) if live else None,
            )
            if recorder:
                _save(recorder, options.record)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None
        except (RunError, KeyboardInterrupt) as error:
            raise _in_one_line(error) from None
        finally:
            run = self.runtime.last_run
            if run is not None and run is not run_before and not is_nested:
                if live:
                    live.finish(run)
                else:
                    data, metadata = mime_bundle(run, _width(self._shell))
                    self._shell.display_pub.publish(data=data, metadata=metadata)

    @line_magic("agent")  # type: ignore[arg-type]  # IPython types it for use without a name only
    def command(self, line: str) -> None:
        """`%agent models` lists what the provider of the model offers, `%agent models anthropic:` what another does."""
        match line.split():
            case ["models"]:
                named = self.model or default_model()
            case ["models", named]:
                pass
            case _:
                raise UsageError("%agent takes: models [PROVIDER:]. A question goes into the lines below %%agent.")
        try:
            print(*list_models(named.partition(":")[0], self.runtime.connection), sep="\n")
        except RunError as error:
            raise _in_one_line(error) from None

    def _model(self, named: str | None, record: str | None) -> tuple[Model, Recorder | None]:
        """The model to ask, and what keeps its replies, where that is wanted."""
        if record and os.environ.get("OP_JUPYTER_REPLAY", "0") != "0":
            return resolve(f"replay:{record}"), None
        if record is not None and (not record or Path(record).expanduser().is_dir()):
            raise UsageError(f"--record takes the name of a file, not {record!r}")
        model = resolve(named or self.model or default_model())
        if record is None:
            return model, None
        recorder = Recorder()
        return recorder.wrap(model), recorder


def _save(recorder: Recorder, path: str) -> None:
    try:
        recorder.save(path)
    except OSError as error:
        raise UsageError(f"--record cannot write {path!r}: {error.strerror}") from None


def _parsed(magic: Any, line: str) -> Any:
    """The options in `line`, without the quotes that IPython leaves on them."""
    try:
        options = parse_argstring(magic, line)
    except ValueError as error:
        raise UsageError(f"The options cannot be read: {error}") from None
    for name, value in vars(options).items():
        if isinstance(value, str) and len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            setattr(options, name, value[1:-1])
    return options


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _tool_choice(text: str) -> ToolChoice:
    match text:
        case "auto" | "required" | "none":
            return text
        case _:
            return {"type": "function", "name": text}


def _in_one_line(error: BaseException) -> BaseException:
    """`error`, shown in the cell as one line: what led to it stands in the run, and a traceback would show our code."""
    line = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    error._render_traceback_ = lambda: [line]  # type: ignore[attr-defined]  # IPython's own hook for this
    return error


def _width(shell: InteractiveShell) -> int:
    """The columns that a run's text may take: those of a terminal; in a notebook it is the same text everywhere."""
    is_terminal = getattr(shell, "kernel", None) is None
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if is_terminal else WIDTH


def load(shell: InteractiveShell) -> None:
    """Register the magics in `shell`, and in a kernel the comms that views open."""
    shell.register_magics(AgentMagics(shell))
    host.ask = ask_with_input
    if shell.display_formatter:
        # A run at the end of a cell is shown as its agent cell shows it.
        shell.display_formatter.mimebundle_formatter.for_type(Run, lambda run, **_: mime_bundle(run, _width(shell)))
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        register(kernel.comm_manager)
