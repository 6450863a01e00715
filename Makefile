# Every target does its own set-up through scripts/run: a .venv from the lock and, where Spark runs, Java 17+, and for
# tests the programs of MariaDB.
# The workers take whole modules in the order of tests/conftest.py, the longest first. There are three for two cores,
# because tests also wait: for a server, a signal or a job of Spark.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder
ALL_TESTS := -m "" -o session_timeout=43200
# Some shells set this; each of the thousands of processes that tests start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo test bench check size docs lint types mutants integration servers lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## Watch real data go through Spark into an S3 server while tasks and the driver are killed
	@scripts/run --java holdfast demo

test: ## Run the default tests (about 6 minutes on 2 cores)
	@scripts/run --java python -m tests.class_archive
	@scripts/run --java --databases python -m pytest $(SIDE_BY_SIDE)

bench: ## Measure the write path and the job commit against Spark's own, then every committer on one job
	@scripts/run --java python benchmarks/write_path.py
	@scripts/run python benchmarks/committers.py

check: lint types ## Run lint, types and every test, the long ones too, and the checker's small worlds and walks
	@scripts/run --java python -m tests.class_archive
	@scripts/run --java --databases python -m pytest $(SIDE_BY_SIDE) $(ALL_TESTS) --hypothesis-profile thorough
	@scripts/run holdfast check two_phase --small
	@scripts/run holdfast check two_phase --walk --seed 7 --seconds 600
	@scripts/run holdfast check transactions --small
	@scripts/run holdfast check transactions --walk --seed 7 --seconds 300
	@scripts/run holdfast check units --small
	@scripts/run holdfast check --all

size: ## Count lines, modules, classes, functions and words; the wheel; the time of `import holdfast`
	@scripts/run python scripts/size.py

lint: ## Run the linter
	@scripts/run ruff check .
	@scripts/run ruff format --check src checker tests benchmarks examples

types: ## Run the type checker
	@scripts/run mypy
	@scripts/run mypy --strict examples/sqlite-store/holdfast_sqlite.py

docs: ## Build the documentation with the API reference in site/ (offline; a warning is an error)
	@scripts/run python -m sphinx -q -W --keep-going -b html docs site
	@echo "open site/index.html"

mutants: ## Plant mistakes, run checker and tests on each, print the shares that are caught (--all: days)
	@scripts/run python -m tests.mutation $(MUTANTS)

integration: ## Run the tests against real Spark and real servers only, the long ones too
	@scripts/run --java python -m tests.class_archive
	@scripts/run --java --databases python -m pytest $(SIDE_BY_SIDE) $(ALL_TESTS) tests/integration

servers: ## Install the S3 servers that make integration tries besides its own (Go, Maven, npm, Debian)
	@scripts/servers

lock: ## Resolve the dependencies anew into the lock files (then commit them)
	@scripts/run scripts/lock

clean: ## Remove .venv and everything that tools left behind
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist checker/build src/*.egg-info checker/src/*.egg-info
	rm -rf site artifacts derby.log metastore_db spark-warehouse benchmarks/results
	find src checker tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
