# The two commands: `make demo` shows the whole product at work, `make test` checks all of it.
# `make help` lists the others. Nothing is needed beforehand but Python 3.11 or newer.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
LOCAL := $(PY) -m broker_project.local
# Nearby: servers on the usual ports where usable, else embedded ones; see docs.
WITH_SERVICES := $(LOCAL).run --nearby

# One per core pays; PYTEST_PROCESSES=0 runs them in this one, for a debugger.
PYTEST_PROCESSES ?= 2

export BROKER_LOCAL := 1
export PYTHONUNBUFFERED := 1

## demo: a tenant's agent answers a question, live; ONCE=1 ends after the answer
.PHONY: demo
demo: export ONCE := $(ONCE)
demo: install
	@exec $(LOCAL).demo

## dev: web with reload and a worker, for daily work
.PHONY: dev
dev: install
	@exec $(LOCAL).dev

## test: lint, types, import rules, migrations, all tests; PYTEST_ARGS="tests/agents -k cancel"
.PHONY: test
test: install-dev
	@exec $(WITH_SERVICES) $(MAKE) run-checks run-tests

## check: all of `test` but the tests
.PHONY: check
check: install-dev
	@exec $(WITH_SERVICES) $(MAKE) run-checks

## format: let ruff rewrite the code
.PHONY: format
format: install-dev
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .

## bench: the benchmarks
.PHONY: bench
bench: install-dev
	@exec $(PY) benchmarks/loop.py $(BENCH_ARGS)

## install: only prepare .venv
.PHONY: install
install: .venv/installed

## stop: stop the embedded PostgreSQL and Valkey
.PHONY: stop
stop:
	@test ! -x $(PY) || $(LOCAL).stop

## clean: stop them, and remove .venv, .data and caches
.PHONY: clean
clean: stop
	@rm -rf .venv .data staticfiles .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST)) | while IFS=: read -r name what; do \
	    printf '  make %-8s %s\n' "$$name" "$$what"; done

# --- inside: with services and settings provided ---

.PHONY: run-checks
run-checks:
	@echo "== ruff check"
	@$(PY) -m ruff check .
	@echo "== ruff format --check"
	@$(PY) -m ruff format --check .
	@echo "== mypy"
	@$(PY) -m mypy
	@echo "== import rules"
	@$(PY) -m pytest -q tests/architecture
	@echo "== makemigrations --check"
	@$(PY) manage.py makemigrations --check --dry-run

.PHONY: run-tests
run-tests:
	@echo "== pytest"
	@$(PY) -m pytest -n $(PYTEST_PROCESSES) --dist loadfile $(PYTEST_ARGS)

# --- the virtual environment: again only when a requirements file changed ---

.venv/installed: requirements.txt
	@sh broker_project/local/prepare.sh requirements.txt
	@touch $@

.PHONY: install-dev
install-dev: .venv/installed-dev

.venv/installed-dev: requirements-dev.txt requirements.txt
	@sh broker_project/local/prepare.sh requirements-dev.txt
	@touch $@ .venv/installed
