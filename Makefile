# `make demo` and `make test` install what they require on a fresh machine; see scripts/bootstrap.sh.
.DEFAULT_GOAL := help
.PHONY: help demo tour test lint bench docs soak self-test modal-check clean setup setup-dev setup-soak
.NOTPARALLEL:

JOBS ?= 4
PYTEST_ARGS ?=
SOAK_ARGS ?= -n $(JOBS) --durations=5
BENCH_ARGS ?=
SEED ?= 1

BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# With this variable, pytest would rewrite every test module again in each process.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: setup ## run the whole pipeline on the example: branch, report and summary
	@$(BIN)/mngr demo $(DEMO_DIR)

tour: setup ## show agents without the pipeline; requires only tmux, git and Python
	@./scripts/tour.sh

test: lint ## run every check and test (JOBS=2, PYTEST_ARGS='-k name')
	@$(BIN)/pytest -n $(JOBS) $(PYTEST_ARGS)
	@$(BIN)/mngr tutorial check $(if $(PYTEST_ARGS),--no-results)

lint: setup-dev ## check style, types, import layers and man pages
	@./scripts/lint.sh

bench: setup-dev ## run the benchmarks
	@$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

docs: setup-dev ## write the man pages and the table of agent types, and record the README's recording
	@$(BIN)/python scripts/man.py man
	@$(BIN)/python scripts/agent_types.py docs/agents.md
	@$(BIN)/python scripts/record_day.py docs/day.svg

soak: setup-soak ## run slow tests, and property tests with many more examples
	@$(BIN)/pytest -m soak $(SOAK_ARGS) tests
	@$(BIN)/pytest -m 'hypothesis and not soak' --hypothesis-profile=soak -n $(JOBS) tests

self-test: setup-dev ## run the pipeline on mngr's own end-to-end tests: failing ones and ten more
	@$(BIN)/mngr tmr run tests/e2e --type mechanic --only failing --sample 10 --seed $(SEED) \
		--agent-arg=--budget=300 --yes

modal-check: setup-dev ## test an agent's life cycle on Modal itself
	@$(BIN)/python scripts/modal_check.py

clean: ## remove .venv and other generated files
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

setup:
	@./scripts/bootstrap.sh run

setup-dev:
	@./scripts/bootstrap.sh dev

setup-soak:
	@./scripts/bootstrap.sh soak
