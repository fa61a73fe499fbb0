# Every target sets up what it needs: only Python (3.11 or newer) and make are assumed.
PYTHON ?= python3
# Another Python than the usual one gets environments of its own: make check PYTHON=python3.13
VERSION := $(if $(filter python3,$(PYTHON)),,-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
RUN := .venv$(VERSION)
DEV := .venv-dev$(VERSION)
# What was compiled is kept, whatever the caller's shell says: reading 900 files anew costs every run half a minute.
unexport PYTHONDONTWRITEBYTECODE
AUDIT := .venv-audit$(VERSION)
# Only what is imported is compiled, when it first is: compiling all that is installed takes a minute of processor time.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help demo test check slow everywhere mutants wheel image audit fuzz chaos environment soak walk lint linted formatted typed layered compiled tested bench profile screenshots docs lock clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(RUN)/.ready: requirements/run.lock pyproject.toml
	$(PYTHON) -m venv $(RUN)
	$(RUN)/bin/python -m pip install $(PIP_FLAGS) -r requirements/run.lock
	$(RUN)/bin/python -m pip install $(PIP_FLAGS) --no-deps -e .
	@touch $@

$(DEV)/.ready: requirements/dev.lock pyproject.toml
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) -r requirements/dev.lock
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) --no-deps -e .
	@touch $@

$(AUDIT)/.ready: requirements/audit.lock
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install $(PIP_FLAGS) -r requirements/audit.lock
	@touch $@

demo: $(RUN)/.ready  ## see it work: changing sources, an engine, a live panel
	$(RUN)/bin/unstale demo

test: $(DEV)/.ready  ## everything: lint, types, rooms, docs, all tests
	@$(MAKE) --no-print-directory -j 4 compiled layered linted formatted
	@$(MAKE) --no-print-directory -j 2 typed tested

check: $(DEV)/.ready lint  ## lint, types, rooms and the fast tests, in under a minute
	$(DEV)/bin/python -m pytest -n 2 --dist worksteal -q -m "not slow"

slow: $(DEV)/.ready  ## measure which tests are slow, and list them in tests/slow.txt: `make check` leaves them out
	$(DEV)/bin/python -m pytest -q -n 0 -m "not slow" --find-slow

everywhere: $(DEV)/.ready  ## the fast tests on other Pythons, processors, locales, orders, folders, users, under load
	$(DEV)/bin/python tests/everywhere

mutants: $(DEV)/.ready  ## mistakes in the most important functions, which the nearest tests must notice
	$(DEV)/bin/python tests/mutants

wheel: $(DEV)/.ready  ## build the wheel, check it, and use it in empty environments on every Python that is installed
	$(DEV)/bin/python tests/wheel

image: $(DEV)/.ready  ## build the container image and use it, as root with buildah; BASE=… instead of one of Debian's packages
	$(DEV)/bin/python tests/image $(if $(BASE),--base $(BASE))

audit: $(AUDIT)/.ready  ## known weaknesses of what is installed with us, and a bill of materials in dist/
	$(AUDIT)/bin/python tests/audit

fuzz: $(DEV)/.ready  ## parsers that strangers feed, fuzzed with coverage: SECONDS=60 for each
	$(DEV)/bin/python tests/fuzz --seconds $(or $(SECONDS),60)

chaos: $(DEV)/.ready  ## kills, power cuts, broken disks, flipped bits, hostile input: SHARE=0.01 of the goals, MINUTES for each of NAMES, figures in docs/chaos.md
	$(DEV)/bin/python chaos --share $(or $(SHARE),0.01) --minutes $(or $(MINUTES),inf) $(NAMES)

environment: $(DEV)/.ready
	@echo $(DEV)

soak: $(DEV)/.ready  ## an hour of the engine against the truth, then property tests on fresh random cases
	$(DEV)/bin/python bench/soak.py --minutes 60
	$(DEV)/bin/python -m pytest -n 2 --hypothesis-profile soak tests/property tests/contracts tests/simulation tests/integration/test_lab.py

walk: $(DEV)/.ready  ## tables of real servers that change under their copies: STEPS=300 polls of each pair, killed and cut on the way
	UNSTALE_WALK=$(or $(STEPS),300) UNSTALE_WALK_SEED=$(or $(SEED),1) $(DEV)/bin/python -m pytest -n 0 -q -s tests/integration/test_sql_walk.py

lint: $(DEV)/.ready
	@$(MAKE) --no-print-directory -j 5 typed compiled layered linted formatted

# the parts of lint, beside each other, and beside them what the tests need compiled
linted:
	$(DEV)/bin/ruff check
formatted:
	$(DEV)/bin/ruff format --check
typed:
	$(DEV)/bin/mypy
# all tests, beside the types: those take a core alone for a minute where nothing is cached
tested:
	$(DEV)/bin/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --hypothesis-profile full
layered:
	$(DEV)/bin/lint-imports --no-cache
compiled:
	@$(DEV)/bin/python tests/support/compiled.py

bench: $(DEV)/.ready  ## side-by-side measurements, ratios in one run
	$(DEV)/bin/python bench

profile: $(DEV)/.ready  ## where the time goes: flame graphs of engine, server and plan in bench/profiles
	$(DEV)/bin/python bench/flames.py

screenshots: $(DEV)/.ready  ## the dashboard's pictures in docs/images
	$(DEV)/bin/python bench/screenshots.py

docs: $(DEV)/.ready  ## the documentation as a site in site/
	$(DEV)/bin/mkdocs build --strict

lock: $(DEV)/.ready  ## renew the locked versions
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) uv
	$(DEV)/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --extra all pyproject.toml -o requirements/run.lock
	$(DEV)/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --extra dev pyproject.toml -c requirements/run.lock -o requirements/dev.lock
	$(DEV)/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate requirements/audit.in -o requirements/audit.lock

clean:  ## remove environments and caches
	rm -rf .venv .venv-* site .pytest_cache .mypy_cache .ruff_cache .hypothesis
