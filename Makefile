# make demo   the calculator: one agent, bare and wrapped, in a page        make test   the tests
# make lint   ruff, import-linter, mypy     make e2e   official clients, real browser     make bench   ratios
# make docs   tables that are generated from the code      make setup   .venv alone (the others do it themselves)
#
# Everything goes into .venv. The install is an editable one in strict mode (type checkers resolve it), which links
# files: a new module needs a new install, hence the list of modules in the stamps' prerequisites.

PYTHON ?= python3
BIN := .venv/bin
MODULES := $(wildcard adapters/*.py middleware/*.py translators/*.py translators/*/*.py facade/*.py)
NAMES := $(shell printf '%s\n' $(MODULES) | cksum | cut -d' ' -f1)
STAMP = .venv/.installed-$(1)-$(NAMES)

.PHONY: setup demo test lint bench e2e e2e-setup docs clean

setup: $(call STAMP,test)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agui-pipeline needs Python 3.11 or later; set PYTHON=…")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

# One stamp a dependency group: `make demo` does not install what only the tests need.
.venv/.installed-%-$(NAMES): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --editable . --config-settings editable_mode=strict --group $*
	@rm -f .venv/.installed-$*-*
	@touch $@

demo: $(call STAMP,demo)
	@$(BIN)/python examples/calculator/server.py $(ARGS)

test: $(call STAMP,test)
	$(BIN)/python -m pytest $(ARGS)

lint: $(call STAMP,lint)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy -p agui_pipeline
	$(BIN)/mypy tests examples benchmarks

bench: $(call STAMP,test)
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(call STAMP,test)
	$(BIN)/python docs/generate.py

# Node 18 or later and Debian's chromium must be on the machine.
e2e: e2e-setup
	AGUI_E2E=require $(BIN)/python -m pytest -m "e2e and not slow" $(ARGS)

e2e-setup: $(call STAMP,e2e) tests/e2e/node_modules/.installed tests/e2e/old_clients/node_modules/.installed

%/node_modules/.installed: %/package.json
	cd $* && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info tests/e2e/node_modules tests/e2e/old_clients/node_modules
