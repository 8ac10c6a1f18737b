# What a stranger needs: `make up` and `make test`. Everything runs from .venv (or MODELFORGE_VENV), which bootstrap.py
# makes and completes.

PYTHON ?= python3
PORT ?= 8000
HOST ?= 127.0.0.1
BOOTSTRAP = $(PYTHON) -I modelforge/bootstrap.py
VENV = $(or $(MODELFORGE_VENV),.venv)
BIN = $(VENV)/bin
TESTS ?=
WORKERS ?= 2
# Know no database: run in the second pass only.
ONCE = tests/agent tests/nvml tests/setup

export PORT HOST

.PHONY: help python up tools test test-postgresql test-sqlite deploy-test check format bench lock clean

help:
	@echo "make up     the control plane and an agent on this machine (PORT=8000 HOST=127.0.0.1)"
	@echo "make test   all tests, on PostgreSQL with Valkey and on SQLite (TESTS=tests/nodes for a part)"
	@echo "make deploy-test  the real containers, on the Docker Engine that is there (TESTS=tests/deploy/test_joining.py)"
	@echo "make check  format, lint, types, floors, migrations, schema, lock files"
	@echo "make bench  what a beat, a sweep, a page and an idle agent cost"
	@echo "make lock   compile the .in files into requirement files with hashes"
	@echo "make clean  remove the environment and the caches; var/ stays"

python:
	@command -v "$(PYTHON)" >/dev/null || \
		{ echo "There is no $(PYTHON) here. Install Python 3.11 or newer, or name one: make up PYTHON=/path/to/python3.11"; exit 1; } >&2

up: python
	@exec $(BOOTSTRAP) run

tools: python
	@$(BOOTSTRAP) tools

test: tools
	@$(BIN)/python -m tests.parts.needed
	@$(MAKE) --no-print-directory test-postgresql
	@$(MAKE) --no-print-directory test-sqlite

test-postgresql: tools
	@echo "Tests on PostgreSQL and Valkey"
	@MODELFORGE_TEST_DATABASE=postgresql $(BIN)/python -m pytest -n $(WORKERS) $(ONCE:%=--ignore=%) $(TESTS)

test-sqlite: tools
	@echo "Tests on SQLite"
	@MODELFORGE_TEST_DATABASE=sqlite $(BIN)/python -m pytest -n $(WORKERS) $(TESTS)

deploy-test: tools
	@$(BIN)/python -m tests.deploy $(TESTS)

check: tools
	@PATH="$(abspath $(BIN)):$$PATH" MODELFORGE_VAR_DIR=$$(mktemp -d) sh -eu modelforge/check.sh

format: tools
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check --fix -q .

bench: tools
	@$(BIN)/python -m bench

lock: tools
	@$(BIN)/python -m modelforge.lock

clean: python
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@$(BOOTSTRAP) clean
