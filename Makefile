# Two commands: `make compare` runs the main job, `make test` the tests. Both make .venv if needed.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
ARGS ?=
# A file of versions to be installed, where they are not to be the newest.
CONSTRAINT ?=

.PHONY: compare test slow drills lint types pages lowest newest dist notebooks notebooks-executed site \
  benchmarks benchmark-smoke clean help

help:
	@echo "make compare      Bayesian SVM against SVGP and SVC (ARGS='heart german' for other data)"
	@echo "make test         the tests, on all cores (ARGS='tests/inference/test_cavi.py' for some)"
	@echo "make slow         those that are slow by nature, notebooks among them"
	@echo "make drills       slow ones for which .ci/run has no time: killed processes, leaks, draws"
	@echo "make lint types   ruff and mypy"
	@echo "make pages        do tables, pictures and counts on pages show their rows"
	@echo "make lowest       the tests with the lowest versions that setup.cfg claims, on Python 3.10"
	@echo "make newest       the tests with the newest versions that there are, on Python 3.12"
	@echo "make dist         sdist and wheel in dist/, checked"
	@echo "make site         the documentation as HTML, in build/site"
	@echo "make notebooks-executed   outputs of the notebooks that have changed (ARGS='family' for one)"
	@echo "make benchmarks   the measurements behind tables and pictures (ARGS='step quality')"
	@echo "make benchmark-smoke  suites of benchmarks in small: do all of their methods run"

compare: $(VENV)/.compare-installed
	$(BIN)/gpflow-bsvm compare $(ARGS)

# A file stays on one core: its tests share their graphs.
PYTEST = $(BIN)/python -m pytest -n auto --dist loadfile

test: $(VENV)/.dev-installed
	$(PYTEST) -m "not slow" $(ARGS)

slow: $(VENV)/.dev-installed
	$(PYTEST) -m "slow and not drill" $(ARGS)

drills: $(VENV)/.dev-installed
	$(PYTEST) -m drill $(ARGS)

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev-installed
	$(BIN)/mypy

pages: $(VENV)/.dev-installed
	$(BIN)/python benchmarks/draw.py --check
	$(BIN)/python docs/site/walks.py --check

# Versions are told in docs/developers/versions.md.
lowest: PYTHON = python3.10
lowest: VENV = .venv-lowest
lowest:
	$(MAKE) test PYTHON=$(PYTHON) VENV=$(VENV) CONSTRAINT=constraints/lowest.txt

newest: PYTHON = python3.12
newest:
	rm -rf .venv-newest
	$(MAKE) test PYTHON=$(PYTHON) VENV=.venv-newest

dist: $(VENV)/.dev-installed
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

notebooks: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m notebook $(ARGS)

notebooks-executed: $(VENV)/.dev-installed
	$(BIN)/python notebooks/executed/execute.py $(ARGS)

# Warnings are errors, among them links that lead nowhere and pages that are in no navigation.
site: $(VENV)/.docs-installed
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m sphinx -b html -c docs/site \
	  -d build/doctrees --fresh-env --fail-on-warning --keep-going --quiet $(ARGS) . build/site
	@echo "build/site/index.html"

benchmarks: $(VENV)/.dev-installed
	$(BIN)/python benchmarks/run.py $(ARGS)
	$(BIN)/python benchmarks/draw.py

benchmark-smoke: $(VENV)/.dev-installed
	$(BIN)/python benchmarks/suite.py --smoke --budget 280 $(ARGS)

# The extra of that name, and nothing else.
$(VENV)/.%-installed: setup.cfg pyproject.toml $(CONSTRAINT)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || \
	  { echo "Python 3.10 to 3.12 is needed; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(CONSTRAINT:%=--constraint %) --editable ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/api *.egg-info compare-results
