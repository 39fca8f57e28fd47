# The daily commands. `make setup` first; all others use the environment it makes.
VENV = .venv
BIN = $(VENV)/bin
SIZE = 200MB

.PHONY: help setup test all changed mutants test-source thorough soak storm faults fleet-faults fleet-versions fuzz golden schema prices pictures lint format types docs docs-check check wheel bench bench-pages bench-fleet bench-peers \
	bench-compare bench-search bench-memory home ci

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: ## create .venv and install the project with test dependencies
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install -e '.[test]'

test: ## run the tests, but for those that are marked slow
	$(BIN)/pytest -n auto

all: ## run all tests
	$(BIN)/pytest -n auto --all

test-source: ## run the cases of one source: make test-source NAME=chorus
	$(BIN)/pytest -q tests/test_golden.py tests/test_answers.py tests/test_conformance.py -k "$(or $(NAME),$(error NAME=source is missing))/"

thorough: ## run the property tests with many more examples
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -n auto --all

faults: ## run the fault tests with a hundred times as many kills, failing writes and torn logs
	ASSOC_FAULTS=10 $(BIN)/pytest -n auto --all tests/faults tests/test_incremental_equals_full.py \
		tests/test_conformance.py tests/test_migrations.py tests/test_watch.py -k "not fuzz"

fleet-faults: ## kill a thousand pushes, crash the server and cut connections hundreds of times
	ASSOC_NEEDS_PG=1 ASSOC_FAULTS=85 $(BIN)/pytest -n auto tests/fleet/test_fleet_faults.py

fleet-versions: ## run the tests of the server with PostgreSQL 14, 16, 17 and 18, which npm brings
	$(BIN)/python -m tests.fleet.versions $${VERSIONS:-14 16 17 18}

changed: ## run the tests that a diff can break, slow ones of its area included: BASE=HEAD, else main
	@HYPOTHESIS_PROFILE=few $(BIN)/python -m tests.changed --base $(or $(BASE),main) $(ARGS)

mutants: ## plant each bug of tests/mutants.toml in a copy, and name those that no test notices
	@$(BIN)/python -m tests.mutants $(ARGS)

soak: ## for an hour, kill a watch every few seconds while files change
	$(BIN)/python -m tests.faults.soak --minutes $${MINUTES:-60}

storm: ## for ten minutes, run and kill all commands at random while the homes of all agents change
	$(BIN)/python -m tests.faults.storm --minutes $${MINUTES:-10} --seed $${SEED:-$$(date +%s)}

fuzz: ## feed damaged lines to each parser for five minutes, with a new seed each time
	FUZZ_SECONDS=$${FUZZ_SECONDS:-300} FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)} \
		$(BIN)/pytest -n auto tests/faults/test_fuzz.py

golden: ## rewrite the expected files of the tests; review the diff
	$(BIN)/pytest --golden --all

schema: ## write what all migrations add up to into schema/new/schema.sql
	$(BIN)/python -m docs.new_schema

prices: ## write what the installed genai-prices says of known models into prices.json
	$(BIN)/python -m docs.price_table

pictures: ## take the pictures of README and docs/ with the browser of the tests
	$(BIN)/python -m docs.pictures

lint: ## run ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: ## fix and format with ruff
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: ## run mypy
	$(BIN)/mypy

docs: ## update the generated parts of README, docs/ and metadata.yml
	$(BIN)/cog -I . -r @docs/pages.txt

docs-check: ## check that the generated parts are current
	$(BIN)/cog -I . --check @docs/pages.txt

check: lint types docs-check all ## run lint, types, docs-check and all tests

wheel: ## build the wheel into dist/
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

bench: ## measure everything on homes of 20 MB and 200 MB; ARGS=--write keeps the report
	$(BIN)/python -m benchmarks.bench $(ARGS)

bench-pages: ## measure the pages of a server while an agent writes
	$(BIN)/python -m benchmarks.pages $(ARGS)

bench-fleet: ## measure pushes of a home of SIZE (200MB) to a PostgreSQL server made for it
	$(BIN)/python -m benchmarks.fleet --size $(SIZE) $(ARGS)

bench-peers: ## compare with other programs on homes of three shapes, each on a private copy
	$(BIN)/python -m benchmarks.peers $(ARGS)

bench-compare: ## compare the commit BASE with this checkout, on a home of SIZE (200MB)
	$(BIN)/python -m benchmarks.compare $(or $(BASE),$(error BASE=commit is missing)) --size $(SIZE) $(ARGS)

bench-search: ## ask searches with known answers; needs ASSOC_REAL_CORPUS for most of them
	$(BIN)/python -m benchmarks.search $(ARGS)

bench-memory: ## ask who made what, what ended an error, and what nothing answers; SETS="build/memory/..."
	$(BIN)/python -m benchmarks.memory ask $(SETS) $(ARGS)

home: ## write a synthetic home of 20 MB into build/home
	$(BIN)/python benchmarks/generate.py build/home --bytes 20MB

ci: ## run everything that must pass before a merge, in a clean environment
	.ci/run
