"""Who may import whom, what importing costs, and how large a file may be."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "op_jupyter"
SOURCES = sorted(PACKAGE.rglob("*.py"))

VALUES = {"errors", "events", "messages", "redact"}
TOOLS = {"tools", "tools.*"}
# The contract, and what providers share or are split into; a provider itself is always named in full.
PROVIDERS = {"providers", "providers._*"}
LOOP = {"agent_loop", "arguments", "context", "control", "decision", "emit", "endings", "history"}
LOOP |= {"threads", "tool_execution"}
RUN = VALUES | TOOLS | LOOP | {"providers", "record", "runtime"}

# The first pattern that fits a module says what of ours it may import.
MAY_IMPORT = {
    **dict.fromkeys(VALUES, VALUES),
    "record": VALUES,
    "control": VALUES | {"queued", "threads"},
    "queued": VALUES,
    "threads": set(),
    "history": VALUES,
    "tools": VALUES,
    "tools.*": VALUES | TOOLS | {"control"},
    "providers.local": VALUES | PROVIDERS | {"control", "providers.openai_chat"},
    "providers.ollama": VALUES | PROVIDERS | {"providers.openai_chat"},
    "providers": VALUES,
    "providers.*": VALUES | PROVIDERS | {"control"},
    "context": VALUES | TOOLS | {"control", "providers"},
    "agent_loop": VALUES | TOOLS | {"context", "control", "endings", "history", "providers", "tool_execution"},
    "tool_execution": VALUES | TOOLS | {"context", "control", "endings"},
    "arguments": VALUES | TOOLS | {"context", "decision", "emit", "providers"},
    "emit": VALUES | {"endings", "record"},
    "endings": VALUES | {"record"},
    "decision": VALUES | TOOLS | {"record"},
    "runtime": RUN,
    "current": {"context", "runtime", "tools.decorators"},
    "testing": {"providers.scripted"},
    "pytest_plugin": set(),
    "notebook.as_json": VALUES | {"record", "notebook.prices"},
    "notebook.bundle": VALUES | {"record", "notebook.as_json", "notebook.fitting", "notebook.static_*"},
    "notebook.fitting": VALUES | {"record", "notebook.static_words"},
    "notebook.prices": VALUES,
    "notebook.static_*": VALUES | {"record", "notebook.fitting", "notebook.static_*"},
    "notebook.widget": VALUES | {"record"},
    # Recording is something that the notebook does to a model.
    "notebook*": RUN | {"current", "notebook*", "providers.replay"},
    "": {"current", "errors", "notebook*", "record", "runtime", *TOOLS},
}

# What may stand at the top of a module beside the standard library: nothing that takes time to import.
LIGHT = {"op_jupyter", "typing_extensions"}
FRONT_ENDS = {"IPython", "anywidget", "comm", "ipykernel", "ipywidgets", "traitlets"}


def module_name(path: Path) -> str:
    """The name of a module below `op_jupyter`; empty for the package itself."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


MODULES = {module_name(path): ast.parse(path.read_text()) for path in SOURCES}


def imports(tree: ast.AST, *, inside_functions: bool = True) -> Iterator[str]:
    """The full names that `tree` imports, except for those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for branch in node.orelse:
                    yield from imports(branch, inside_functions=inside_functions)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if not inside_functions:
                pass
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                assert node.level == 0, "relative imports are not used here"
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            case _:
                yield from imports(node, inside_functions=inside_functions)


def ours(tree: ast.AST) -> set[str]:
    """The modules below `op_jupyter` that `tree` imports, or imports something from."""
    found: set[str] = set()
    for name in imports(tree):
        package, _, rest = name.partition(".")
        if package == "op_jupyter":
            found.add(rest if rest in MODULES else rest.rpartition(".")[0])
    return found


def fits(module: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(module, pattern) for pattern in patterns)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_stands_below_it(module: str) -> None:
    allowed = next(allowed for pattern, allowed in MAY_IMPORT.items() if fits(module, [pattern]))
    assert {name for name in ours(MODULES[module]) if not fits(name, allowed)} == set()


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith("notebook")])
def test_only_the_notebook_imports_a_front_end(module: str) -> None:
    assert {name.partition(".")[0] for name in imports(MODULES[module])} & FRONT_ENDS == set()


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith("notebook")])
def test_what_is_not_ours_is_imported_where_it_is_used(module: str) -> None:
    roots = {name.partition(".")[0] for name in imports(MODULES[module], inside_functions=False)}
    assert roots - set(sys.stdlib_module_names) - LIGHT == set()


@pytest.mark.parametrize("path", [pytest.param(path, id=module_name(path) or "op_jupyter") for path in SOURCES])
def test_a_file_is_short_and_says_what_lives_in_it(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= 350
    assert lines == 0 or ast.get_docstring(ast.parse(text)) is not None


def test_the_public_names_are_there() -> None:
    package = importlib.import_module("op_jupyter")
    names = {"Runtime", "Run", "function", "agentic_function", "RunError", "RunAborted", "OutputError", "DecisionError"}
    names.add("default_runtime")
    assert set(package.__all__) == names
    assert all(getattr(package, name).__name__ == name for name in names)


def loaded_by(code: str) -> set[str]:
    """The packages that a fresh interpreter has loaded after running `code`."""
    program = f"{code}\nimport json, sys\nprint(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_or_any_module_loads_no_third_party_package() -> None:
    names = [f"op_jupyter.{module}".removesuffix(".") for module in MODULES if not module.startswith("notebook.")]
    third_party = loaded_by(f"import {', '.join(names)}") - loaded_by("") - set(sys.stdlib_module_names)
    assert third_party <= LIGHT


def test_importing_the_package_takes_no_time() -> None:
    def seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
        return time.perf_counter() - started

    # The fastest of several, taken in turn: whatever else the machine is doing only ever adds.
    bare, package = (
        min(times) for times in zip(*((seconds(""), seconds("import op_jupyter")) for _ in range(7)), strict=True)
    )
    assert package - bare < 0.05
