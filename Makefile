# `make demo` and `make test` need nothing but Python 3.11: they make .venv and install what they use.
#
#   PYTHON=python3.12        another interpreter
#   TORCH_INDEX=https://download.pytorch.org/whl/cpu   torch's CPU build, where pip would take the CUDA one
#   DEAR_DATA_HOME=folder    the real data sets, for the demo and the tests
#   WORKERS=4                processes that run the tests
#   HYPOTHESIS_EXAMPLES=300  examples a law in `make test-long`, instead of 1,000
#   PIP_AUDIT=1              `make audit` asks PyPI, online, for known holes in the dependencies too

PYTHON ?= $(shell for p in python3.11 python3; do $$p -c "" 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The demo compiles what it imports. Tests, for which warnings are errors, need all files compiled:
# the compiler warns of those of other packages.
COMPILE := @$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
INSTALL := @$(BIN)/python .ci/patiently $(PIP) install --no-compile --progress-bar off --constraint constraints.txt
PINNED = $(shell grep '^$(1)==' constraints.txt)

PYTEST ?= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
ONE_THREAD := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}
PYTEST_ARGS ?= -m "not slow and not ci"
DEMO_ARGS ?=

.PHONY: help demo test test-ci test-long audit lint format docs notebooks tables dist clean

help:
	@echo "make demo    set up, then compute recourse for refused rows, also through DiCE and Alibi (DEMO_ARGS='--dataset adult')"
	@echo "make test    set up, then run the quick tests (PYTEST_ARGS=... for others)"
	@echo "make test-ci  what a merge needs besides: fresh processes, pages, commands, hosts' notebooks"
	@echo "make test-long  every law over 1,000 random cases, then the slow tests"
	@echo "make audit   bandit over the source, and pip check"
	@echo "make lint    ruff and mypy"
	@echo "make format  format, and fix what ruff can fix"
	@echo "make docs    the documentation, in docs/_build/html; the notebooks are compared with a fresh run"
	@echo "make notebooks  run the notebooks and store their outputs"
	@echo "make tables  every table and figure of the documentation (an hour of CPU; an interrupted run goes on)"
	@echo "make dist    sdist and wheel, in dist/"
	@echo "make clean   remove what was built; .venv stays"

demo: $(VENV)/.demo
	$(BIN)/dear-plugin demo $(DEMO_ARGS)

# Tests train models and call parts of DEAR by themselves, whose threads would wait for one another.
# tests/behaviour/test_threads.py calls DEAR as a user does, with other counts.
test: $(VENV)/.test
	$(ONE_THREAD) $(PYTEST) $(PYTEST_ARGS)

test-ci: $(VENV)/.test
	$(ONE_THREAD) $(PYTEST) -m "ci and not slow"

# `loadfile` would leave all laws to one process.
test-long: $(VENV)/.test
	$(ONE_THREAD) HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n $(WORKERS) --dist load tests/properties
	$(ONE_THREAD) $(PYTEST) -m slow

audit: $(VENV)/.dev
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive dear_plugin adapters
	$(PIP) check
ifdef PIP_AUDIT
	$(PIP) install -qq pip-audit==2.10.1
	$(BIN)/pip-audit --progress-spinner off --skip-editable
else
	@echo "pip-audit left out: it needs the network; PIP_AUDIT=1 runs it"
endif

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Compares the notebooks with a fresh run; one that passed, and whose code has not changed, is not run again.
# Two run at once: the threads of their models would wait for one another.
docs: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/python docs/check_notebooks.py
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

# After a change of the outputs: NOTEBOOKS="01 05" for some of them.
notebooks: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/python docs/check_notebooks.py --store $(NOTEBOOKS)

# One process, and one thread of the models, too: CPU seconds are measured. TABLES="contest hosts" for some commands.
tables: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m dear_plugin.benchmark tables --out docs/results \
		$(if $(TABLES),--only $(TABLES))
	$(BIN)/python docs/tables.py

dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --quiet

clean:
	rm -rf build dist docs/_build docs/notebooks docs/api/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
	find dear_plugin adapters tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "dear-plugin needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# Torch goes first and alone: asked for through a range, pip takes the newest, which on Linux brings CUDA.
# XGBoost comes with dice-ml; its wheel for older Linuxes is the one without CUDA, and as good on a newer one.
$(VENV)/.torch: constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV): once, some minutes. A line a minute says what pip is at."
	@$(BIN)/python .ci/patiently $(PIP) install --no-compile --progress-bar off --no-deps $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(call PINNED,torch)
ifeq ($(shell uname -sm),Linux x86_64)
	-@$(PIP) download -qq --no-deps --only-binary :all: --platform manylinux2014_x86_64 \
		--dest $(VENV)/wheels $(call PINNED,xgboost) \
		&& $(PIP) install -qq --no-deps $(VENV)/wheels/$(subst ==,-,$(call PINNED,xgboost))-*.whl
endif
	@touch $@

# Each set-up after the first one adds what it needs.
$(VENV)/.demo: pyproject.toml $(VENV)/.torch
	$(INSTALL) --editable ".[dice,alibi,plots]"
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.torch
	$(INSTALL) --editable ".[all,test]"
	$(COMPILE)
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(INSTALL) --editable ".[all,dev]"
	$(COMPILE)
	@touch $@ $(VENV)/.test $(VENV)/.demo

$(VENV)/.docs: pyproject.toml $(VENV)/.torch
	$(INSTALL) --editable ".[all,test,docs]"
	$(COMPILE)
	@touch $@ $(VENV)/.test $(VENV)/.demo
