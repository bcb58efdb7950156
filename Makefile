# The two commands: `make demo` and `make test`. Both set up .venv first where that is needed.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test lint types unit notebooks browser verify lab explorer lock clean

BIN := .venv/bin
TESTS ?= tests workbench README.md
WORKERS ?= 2

# Inherited settings of other installations must not reach ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV SPARK_HOME JUPYTER_PATH
export PYTHONNOUSERSITE := 1
export JUPYTER_PREFER_ENV_PATH := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1

help:
	@echo "make demo    set up .venv and run the main job; prints where report, map and tables are"
	@echo "make test    set up .venv and check everything: lint, types, tests, notebooks, browser"
	@echo "make verify  TIP's brokers over all interleavings, here and by SPIN"
	@echo "make lab     JupyterLab with the right kernel"
	@echo "make explorer  the explorer as a page of its own (OPEN=--no-browser: only serve it)"
	@echo "make lock    find out the newest versions that fit together and pin them in constraints.txt"
	@echo "make clean   remove what can be made again, .venv included"

setup:
	@sh tools/setup

demo: setup
	@$(BIN)/workbench demo $(if $(OUT),--out "$(OUT)")

test: lint types unit notebooks browser

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

unit: setup
	@sh tools/spin
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not browser" $(TESTS)

notebooks: setup
	@if [ -n "$$(find notebooks -name '*.ipynb' -not -path '*/.*' 2>/dev/null | head -n 1)" ]; then \
	  set -x; $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -o addopts="-ra --strict-markers" \
	    --nbval-lax --nbval-current-env --nbval-cell-timeout=300 \
	    $$(test ! -f tests/notebooks/sanitize.cfg || echo --nbval-sanitize-with tests/notebooks/sanitize.cfg) notebooks; \
	else echo "no notebooks yet"; fi

browser: setup
	@if [ -d tests/browser ]; then sh tools/chromium && set -x && $(BIN)/python -m pytest -m browser tests/browser; \
	else echo "no browser tests yet"; fi

verify: setup
	@sh tools/spin
	$(BIN)/python -m workbench.tip.verified

lab: setup
	$(BIN)/python -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB)

explorer: setup
	$(BIN)/python -m voila $(OPEN) --TagRemovePreprocessor.remove_cell_tags=notebook-only notebooks/0-start/explorer.ipynb

lock:
	@sh tools/lock

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
