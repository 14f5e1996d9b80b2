# Everything a developer does by hand. `make demo` and `make test` set up whatever they need.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
CORPORA ?= corpora

.PHONY: demo test lint types imports unit setup lock clean

demo: setup ## Set up, then run the main job end to end
	$(BIN)/sealab demo

test: lint types imports unit ## Set up, then lint, type-check and test

setup: $(VENV)/.installed

$(VENV)/.installed: requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "sealab needs Python 3.11 or newer; install it, or say: make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "the venv module is missing; install it (Debian: apt install python3-venv)" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lint: setup ## Formatting and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup ## mypy strict
	$(BIN)/mypy

imports: setup ## Import directions
	$(BIN)/lint-imports

unit: setup ## The tests
	$(BIN)/python -m pytest

lock: setup ## Renew the hashed locks from pyproject.toml (they name no registry)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --group build pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --group build --group test --group lint --group bench --group lock pyproject.toml -o requirements-dev.txt

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
