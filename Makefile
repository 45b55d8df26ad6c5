# Two commands do everything: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo real-pages docs test test-fast lint types format install install-dev chromium clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: install ## install, prove a method of one's own, and evaluate every method on the embedded retriever and pages
	@echo; echo "— a method of one's own —"; cat examples/contrast.py; echo
	@$(BIN)/harness check examples/contrast.py "adaptive(contrast)"
	@echo; echo "— every built-in method on the embedded retriever and benchmark —"
	@$(BIN)/harness evaluate --out runs/demo
	@echo; echo "— the leaderboard, with this run on it —"
	@$(BIN)/harness leaderboard --runs runs/demo --out runs/leaderboard

real-pages: install ## Debian's R manuals and a real transformer, from PDF to leaderboard (apt-get install r-doc-pdf)
	$(BIN)/python -m pip install --editable ".[minilm]"
	HARNESS=$(BIN)/harness scripts/r_doc_pdf.sh

docs: install-dev ## the documentation site: runs/docs/index.html; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

test: install-dev chromium ## all tests, the browser's too
	$(BIN)/python -m pytest --numprocesses 2

test-fast: install-dev ## the tests of a quick loop
	$(BIN)/python -m pytest --numprocesses 2 -m "not slow"

lint: install-dev ## ruff, without changing anything, and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install-dev ## the type checker on the three packages
	$(BIN)/mypy

format: install-dev ## let ruff rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(VENV)/installed ## the project and what it runs on
install-dev: $(VENV)/installed-dev ## the same and what its tests need

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --editable ".[dev]"
	@touch $@ $(VENV)/installed

chromium:
	@scripts/install-chromium

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
