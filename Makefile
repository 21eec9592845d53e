# `make` prints this table; every target that needs the environment makes it first, once.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV  := .venv
BIN   := $(VENV)/bin
# Two sets in one environment: what `make demo` needs, and everything.
BASE  := $(VENV)/.installed-base
STAMP := $(VENV)/.installed
BENCH := .hades/bench
DATA  := $(or $(HADES_DATA),../shared/data)
# Another package index: make install INDEX=https://host/simple
export INDEX
# The first interpreter that is 3.11 or newer; a shim that cannot start one does not count.
FIND_PYTHON := for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done; true
INSTALL = python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "HADES needs Python 3.11 or newer and found none (python3.11, python3.12, python3.13, python3, python): install it and run make again" >&2; \
		exit 1; \
	fi; \
	"$$python" .ci/install.py

# No telemetry is sent, and Prefect keeps its files in the project.
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export PREFECT_HOME ?= $(CURDIR)/.hades/prefect
export PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS ?= 120
export PREFECT_CLI_PROMPT := false
export MLFLOW_DISABLE_TELEMETRY := true
export GX_ANALYTICS_ENABLED := false
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
# Tests and benchmarks start hundreds of processes: modules are compiled once, whatever the caller's environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test test-e2e test-wheel week check lint-deployments format bench bench-homes serve up test-arango soak docs clean

help:  ## show this table
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP)  ## create .venv and install everything, pinned; skipped when nothing changed

$(BASE): pyproject.toml constraints.txt setup.py
	@[ -e $(STAMP) -a $(STAMP) -nt pyproject.toml -a $(STAMP) -nt constraints.txt ] || { $(INSTALL) base; }
	@touch $@

$(STAMP): pyproject.toml constraints.txt setup.py
	@$(INSTALL) dev
	@touch $(BASE) $@

demo: $(BASE)  ## build a graph from the standard library and ask three questions; on a terminal, then serve the explorer
	@$(BIN)/hades demo
	@if [ -t 1 ]; then HADES_HOME="$${HADES_HOME:-.hades}/demo" exec $(BIN)/hades serve --no-token; fi

TESTS := $(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m "not soak and not wheel and not week"

test: $(STAMP)  ## every test that needs no other program: six minutes on two cores
	@$(TESTS) --ignore tests/e2e

test-e2e: $(STAMP)  ## a Prefect server, the explorer in a browser, every command that a page of docs/ shows; minutes
	@$(TESTS) tests/e2e

test-wheel: $(STAMP)  ## the built wheel in an empty environment of each Python found: demo, a folder, a question; minutes
	@$(BIN)/python -m pytest -q -m wheel tests/wheel

week: $(STAMP)  ## seven nights on a real documentation, with the default embedder; also on ArangoDB where HADES_ARANGOD is; minutes
	@$(BIN)/python -m pytest -q -rs -s -p no:randomly -m week --timeout 7200 tests/week

check: $(STAMP) lint-deployments  ## wheels of every pin, size, ruff, mypy --strict, import contracts, deployment linters, tests/architecture
	@$(BIN)/python .ci/wheels.py
	@$(BIN)/python .ci/size.py
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted: run 'make format'" >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -q tests/architecture

lint-deployments: $(STAMP)  ## Dockerfile, compose, Kubernetes, systemd and YAML, each with its own linter; offline
	@$(BIN)/yamllint --strict deployments .github prefect.yaml .yamllint
	@$(BIN)/hadolint --no-color deployments/Dockerfile
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec deployments/compose*.yaml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yaml deployments/github/*.yaml
	@$(BIN)/kubernetes-validate --strict --quiet $(filter-out %/arangodb.yaml %/kustomization.yaml,$(wildcard deployments/kubernetes/*.yaml))
	@deployments/systemd/verify

format: $(STAMP)  ## fix what ruff can fix, then format
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

bench: $(STAMP) bench-homes  ## the ratio benchmarks of benchmarks/, one table each
	@mkdir -p benchmarks/results; failed=""; \
	for bench in benchmarks/bench_*.py; do \
		name=$$(basename "$$bench" .py); name=$${name#bench_}; echo "== $$name"; began=$$(date +%s); \
		case $$name in \
			hierarchy|nightly|retrieval|tiers) needs="--home $(BENCH)/arxiv" ;; \
			context|fusion) needs="$(BENCH)/hotpotqa $(DATA)/hotpotqa/questions.jsonl.gz" ;; \
			*) needs="" ;; \
		esac; \
		$(BIN)/python "$$bench" $$needs --json "benchmarks/results/$$name.json" || failed="$$failed $$name"; \
		echo "== $$name took $$(( $$(date +%s) - began )) s"; \
	done; \
	$(BIN)/python benchmarks/report.py; \
	if [ -n "$$failed" ]; then echo "these benchmarks failed:$$failed" >&2; exit 1; fi

bench-homes: $(STAMP)  ## build the two graphs that some benchmarks use; takes minutes, once
	@[ -d $(DATA)/arxiv ] || { echo "the benchmarks need HADES_DATA; $(DATA)/arxiv is not there" >&2; exit 1; }
	@export HADES_HOME=$(BENCH)/arxiv; [ -e $$HADES_HOME/snapshots/current ] || { \
		$(BIN)/hades ingest arxiv $(DATA)/arxiv/papers.jsonl.gz --citations $(DATA)/arxiv/citations.jsonl.gz \
			--code-links $(DATA)/arxiv/github_mentions.jsonl.gz; $(BIN)/hades run nightly; }
	@export HADES_HOME=$(BENCH)/hotpotqa; [ -e $$HADES_HOME/snapshots/current ] || { \
		$(BIN)/hades ingest passages $(DATA)/hotpotqa/corpus.jsonl.gz; $(BIN)/hades run nightly; }

serve: $(BASE)  ## REST and the explorer page on 127.0.0.1, read-only, for every user of this machine
	@exec $(BIN)/hades serve --no-token

up:  ## start one ArangoDB on 127.0.0.1:8529 with docker compose (needs HADES_ARANGO_PASSWORD)
	@command -v docker >/dev/null || { echo "make up needs docker with the compose plugin" >&2; exit 1; }
	@docker compose -f deployments/compose.yaml up -d --wait arangodb

test-arango: $(STAMP)  ## tests/contract on a real server and cluster; HADES_TEST_ARANGO_URL names one of yours
	@.ci/test_arango.sh

soak: $(STAMP)  ## random operations on both stores for minutes, and property tests with ten times the examples
	@$(BIN)/python -m pytest -q -m soak --timeout 3600
	@HADES_EXAMPLES=10 $(BIN)/python -m pytest -q -n 2 --timeout 3600 $$(grep -rlE "examples\(|@given" tests --include="test_*.py")

docs: $(STAMP)  ## regenerate docs/reference/ and .env.example, then write the site to site/; offline
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet

clean:  ## remove caches and build output; keeps .venv and .hades
	@rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
