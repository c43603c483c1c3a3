"""What is in the distributions, and that what is installed is what stands here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import op_jupyter

ROOT = Path(__file__).parent.parent
BUILT = [ROOT / "op_jupyter/static/widget.js", ROOT / "labextension/dist/package.json"]

needs_front_end = pytest.mark.skipif(
    "CI" not in os.environ and not all(path.exists() for path in BUILT),
    reason="the front end is not built: run `make install`",
)


def is_installed() -> bool:
    try:
        metadata.version("op_jupyter")
    except metadata.PackageNotFoundError:
        return False
    return True


needs_install = pytest.mark.skipif(
    "CI" not in os.environ and not is_installed(), reason="op_jupyter is not installed: run `make install`"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from the sdist, on a machine without Node."""
    out = tmp_path_factory.mktemp("dist")
    tools = tmp_path_factory.mktemp("bin")
    environment = os.environ | {"PATH": str(tools)}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


@needs_front_end
def test_the_wheel_is_built_from_the_sdist_without_node_and_holds_the_whole_package(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("op_jupyter/**/*.py")}
    assert modules | {"op_jupyter/py.typed", "op_jupyter/static/widget.js"} <= names
    assert {name.partition("/")[0] for name in names} == {
        "op_jupyter",
        f"op_jupyter-{op_jupyter.__version__}.data",
        f"op_jupyter-{op_jupyter.__version__}.dist-info",
    }


@needs_front_end
def test_the_wheel_brings_the_extension_of_jupyterlab(wheel: zipfile.ZipFile) -> None:
    folder = f"op_jupyter-{op_jupyter.__version__}.data/data/share/jupyter/labextensions/op_jupyter"
    package = json.loads(wheel.read(f"{folder}/package.json"))
    assert package["version"] == op_jupyter.__version__
    assert f"{folder}/{package['jupyterlab']['_build']['load']}" in wheel.namelist()
    assert json.loads(wheel.read(f"{folder}/install.json"))["packageName"] == "op_jupyter"


@needs_front_end
def test_the_sdist_holds_the_sources_and_nothing_that_is_installed(wheel: zipfile.ZipFile) -> None:
    assert wheel.filename
    with tarfile.open(next(Path(wheel.filename).parent.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "labextension/src/index.ts", "labextension/package-lock.json"} <= names
    assert not [name for name in names if re.search("node_modules|__pycache__|[.]venv", name)]


@needs_install
def test_what_is_installed_is_of_this_version() -> None:
    assert metadata.version("op_jupyter") == op_jupyter.__version__


@needs_install
def test_jupyterlab_finds_the_extension_enabled_and_ok() -> None:
    labextension = shutil.which("jupyter-labextension", path=Path(sys.executable).parent)
    assert labextension
    done = subprocess.run([labextension, "list"], capture_output=True, text=True, check=True)
    found = re.search("op_jupyter (v.*)", re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr))
    assert found
    assert found[1].split()[:3] == [f"v{op_jupyter.__version__}", "enabled", "OK"]


def test_the_version_is_written_in_one_place() -> None:
    others = [ROOT / "pyproject.toml", *ROOT.glob("labextension/*.json"), *ROOT.glob("op_jupyter/**/*.py")]
    written = re.compile(rf"""version\w*["']?\s*[:=]\s*["']{re.escape(op_jupyter.__version__)}["']""")
    # A lock file is full of other packages' versions.
    places = [
        path.relative_to(ROOT).as_posix()
        for path in others
        if path.name != "package-lock.json" and written.search(path.read_text())
    ]
    assert places == ["op_jupyter/__init__.py"]
    assert "version" not in json.loads((ROOT / "labextension/package-lock.json").read_text())


def test_the_extra_all_brings_every_provider() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev"}
    (everything,) = project["optional-dependencies"]["all"]
    assert (
        set(re.findall(r"\w+", everything.partition("[")[2]))
        == extras
        == {"openai", "anthropic", "gemini", "bedrock", "local"}
    )
