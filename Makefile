# Every target works on a fresh machine with Python 3.11 or later and nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ZOO ?= out/zoo
CLIENTS ?= out/clients-venv
CHROMIUM ?= /usr/bin/chromium
# Python compiles what is imported when it is; pip would compile everything there is, on one core.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Tests that take long stand next to each other: a worker that has nothing left takes half of what waits for the other.
PYTEST := $(BIN)/pytest -n 2 --dist worksteal -o cache_dir="$(abspath $(VENV))/caches/pytest"

# Tools keep their caches beside the environment: but for kernels, nothing else of the checkout need be writable for `make test`.
export RUFF_CACHE_DIR := $(VENV)/caches/ruff
export MYPY_CACHE_DIR := $(VENV)/caches/mypy
export HYPOTHESIS_STORAGE_DIRECTORY := $(abspath $(VENV))/caches/hypothesis

# Where it is set, each of the many processes that tests start compiles the package anew, and each run the tests.
unexport PYTHONDONTWRITEBYTECODE
# Settings of the user's own programs: without assertions, with other modules, with warnings that end pip.
unexport PYTHONOPTIMIZE PYTHONPATH PYTHONSAFEPATH PYTHONWARNINGS

.DEFAULT_GOAL := help
.PHONY: help demo setup test modules lint type kernels wheels vendor index releases docs browser fuzz table oracle emulated bench conformance engines museum zoo clients mutants world clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/run kernels ## recognise handwritten digits with the shipped model
	$(BIN)/ir-runtime inspect examples/digits/digits.xml
	$(BIN)/ir-runtime run examples/digits/digits.xml -i image=examples/digits/images.npy
	$(BIN)/python examples/digits/demo.py

setup: $(VENV)/test ## make the virtual environment for working on the project

test: $(VENV)/test lint ## lint, types, and all tests but the exhaustive ones
	$(MAKE) --no-print-directory -j 2 type modules
	$(PYTEST) -m "not oracle"

# While one processor checks types, the other compiles what tests import; else both processes of the tests begin with that,
# each for itself. What fails here fails there, too, and is said there.
modules: kernels
	@-$(BIN)/pytest -o cache_dir="$(abspath $(VENV))/caches/pytest" -m "not oracle" --collect-only -qq >/dev/null 2>&1

lint: $(VENV)/test ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(VENV)/test ## types
	$(BIN)/mypy

kernels: $(VENV)/kernels ## compile the kernels of the backend native for this processor, where their sources have changed
	@$(BIN)/python -m ir_runtime.backends.native.build

wheels: $(VENV)/kernels ## build the wheels of all systems, with compiled kernels, and the one without, in dist
	$(PIP_INSTALL) --group wheels
	$(BIN)/python -m ir_runtime.backends.native.build.wheels dist

index: $(VENV)/test ## write the lists of modules and the stubs of opsets, after an operation or a kernel was added or moved
	PYTHONPATH=tests $(BIN)/python -m harness.index

releases: $(VENV)/test ## ask released wheels of OpenVINO what they read, and write the table of the package
	PYTHONPATH=tests $(BIN)/python -m releases out/releases

docs: $(VENV)/docs ## build the documentation as a site in out/docs/site, which can be searched without a network
	PYTHONPATH=tests $(BIN)/python -m docs out/docs

vendor: $(VENV)/test ## fetch the JavaScript of reports, at the versions of ir_runtime/report/vendor/manifest.tsv
	PYTHONPATH=tests $(BIN)/python -m harness.vendor

browser: $(VENV)/browser $(CHROMIUM) ## open reports in Chromium, and try what a person would
	$(PYTEST) -m browser tests/browser

# Debian's Chromium: playwright would load one of its own.
$(CHROMIUM):
	@test "$$(id -u)" = 0 || { echo "make browser needs Chromium: apt-get install chromium" >&2; exit 1; }
	apt-get update -q && apt-get install -y -q --no-install-recommends chromium

fuzz: $(VENV)/test kernels ## feed broken models to the package; FUZZ="--minutes 10 --seed 7" for more, "--help" for all
	PYTHONPATH=tests $(BIN)/python -m fuzz.fuzz $(FUZZ)
	PYTHONPATH=tests $(BIN)/python -m fuzz.usage --minutes 10 $(USAGE)

table: $(VENV)/test ## what each operation version was tested against
	@$(BIN)/python tests/harness/table.py

oracle: $(VENV)/zoo zoo ## exhaustive comparison with OpenVINO: whole converted networks
	IR_RUNTIME_ZOO="$(abspath $(ZOO))" $(PYTEST) -m oracle
	HYPOTHESIS_PROFILE=thorough $(PYTEST) tests/ops/test_robustness.py

emulated: $(VENV)/test kernels ## run networks on the kernels of all instruction sets, and AArch64's tests, emulated: TARGETS="--tests", "--help" for more
	PYTHONPATH=tests $(BIN)/python -m targets out/emulated --emulated $(TARGETS)

conformance: $(VENV)/test kernels ## build the conformance corpus out/ir-conformance-<version>.zip, and list what has no case
	PYTHONPATH=tests $(BIN)/python -m conformance.build out

engines: conformance ## ask OpenVINO and ONNX Runtime what they do at the decisions of operations, for the pages of operations
	PYTHONPATH=tests $(BIN)/python -m engines out/ir-conformance-*.zip

museum: $(VENV)/test kernels ## run known differences and generated cases against released wheels of OpenVINO: MUSEUM="--corpus corpus.zip --generate 1000"
	PYTHONPATH=tests $(BIN)/python -m museum out/museum $(MUSEUM)

zoo: $(VENV)/zoo ## build and convert the networks that oracle and bench use
	$(BIN)/python tests/models/zoo.py --jobs 2 --out $(ZOO)

bench: $(VENV)/zoo kernels ## time against OpenVINO, side by side; BENCH="resnet50 --threads 2 --batch 8" says what
	$(BIN)/python tests/bench/all.py --dir $(ZOO) $(BENCH)

clients: $(CLIENTS)/ready kernels ## run ultralytics, optimum-intel and others with ir_runtime in the place of openvino
	PYTHONPATH=tests $(CLIENTS)/bin/python -m clients "$(abspath out/clients)"

mutants: $(VENV)/test kernels ## change random places of the package, and list the changes that no test notices; MUTANTS="--seed 7 --only io"
	PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANTS)

world: $(VENV)/test kernels ## run all IR files of a folder here and in OpenVINO: make world FOLDER=~/models
	PYTHONPATH=tests $(BIN)/python -m world "$(FOLDER)"

clean: ## remove what the other targets made
	rm -rf $(VENV) out dist ir_runtime/backends/*/libraries .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment grows with what is asked for; each stamp is newer than pyproject.toml when it is up to date.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade 'pip>=25.1'

$(VENV)/run: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/kernels: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) -e . --group build
	@touch $@ $(VENV)/run

$(VENV)/test: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[dask]' --group test
	@touch $@ $(VENV)/run $(VENV)/kernels

$(VENV)/docs: pyproject.toml $(VENV)/test
	$(PIP_INSTALL) -e . --group docs
	@touch $@

$(VENV)/browser: pyproject.toml $(VENV)/test
	$(PIP_INSTALL) -e . --group browser
	@touch $@

$(VENV)/zoo: pyproject.toml $(VENV)/test
	$(PIP_INSTALL) -e '.[dask]' --group zoo
	$(BIN)/python tests/harness/check_torch.py
	@touch $@

# Clients want other versions than the rest: an environment of their own.
$(CLIENTS)/ready: pyproject.toml
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -e . --group clients
	$(CLIENTS)/bin/python tests/harness/check_torch.py
	@touch $@
