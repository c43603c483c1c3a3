# Two commands on a machine with Python 3.11 or later, Node 20 or later and a package registry:
#
#   make demo   the quickstart notebook, run by the embedded model; `make lab` opens JupyterLab afterwards
#   make test   every check and every test, without a key and without any other network

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NPM := npm --prefix labextension
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Another environment that happens to be active must not be taken for this one.
unexport VIRTUAL_ENV

INSTALLED := $(VENV)/.installed
FRONT_END := labextension/dist/package.json
NODE_MODULES := labextension/node_modules/.package-lock.json

.PHONY: install demo lab test bench check check-python check-front-end test-front-end test-python test-browser test-others chromium clean

install: $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/python -m op_jupyter.providers.local
	$(BIN)/python notebooks/run_demo.py

lab: build/quickstart.ipynb
	$(BIN)/jupyter lab $<

build/quickstart.ipynb:
	$(MAKE) demo

test: check test-front-end test-python

check: check-python check-front-end

check-python: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check-front-end: $(NODE_MODULES)
	$(NPM) run check

test-front-end: $(NODE_MODULES)
	$(NPM) test

test-python: $(INSTALLED) chromium
	$(BIN)/python -m op_jupyter.providers.local
	$(MAKE) --jobs 2 --output-sync test-browser test-others

# Side by side, since the tests in a browser mostly wait.
test-browser:
	$(BIN)/pytest tests/browser

test-others:
	$(BIN)/pytest --nbval --ignore tests/browser

bench: $(INSTALLED)
	$(BIN)/python -m tests.bench

# For the browser tests, which are skipped where there is none, but never in CI.
chromium:
	command -v chromium || (apt-get update -qq && apt-get install -y -qq chromium) || test -z "$$CI"

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf op_jupyter/static labextension/dist labextension/lib labextension/node_modules

# ---------------------------------------------------------------- set-up, each step once

$(INSTALLED): pyproject.toml $(FRONT_END)
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

$(FRONT_END): $(NODE_MODULES) op_jupyter/__init__.py $(shell find labextension/src -name '*.ts') | $(BIN)/jupyter-builder
	$(NPM) run build

$(NODE_MODULES): labextension/package.json labextension/package-lock.json labextension/.npmrc
	$(NPM) ci

$(BIN)/jupyter-builder:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet jupyter-builder
