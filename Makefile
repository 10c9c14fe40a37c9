# Every target sets up what it needs: on a fresh machine `make test` or `make demo` is the whole story.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RECORDED := gemm_leaky_relu --config m32n32k32_w2_s2 --set M=128 --set N=128 --set K=256

.PHONY: demo test slow vendor docs lint clean
.DEFAULT_GOAL := test

demo: $(INSTALLED)
	$(BIN)/cuasmrl demo

test: lint
	$(BIN)/pytest -n 2

# The campaigns: a later -m replaces the "not slow" of pyproject.toml.
slow: $(INSTALLED)
	$(BIN)/pytest -n 2 -m slow

# Public wheels with GPU code (1 GB), and a sample of their kernels through everything that needs no GPU.
vendor: $(INSTALLED)
	$(BIN)/python -m cuasmrl.bench.vendor.download vendor
	$(BIN)/cuasmrl bench vendor vendor --keep vendor/rows.jsonl

# The documentation as a site in build/site, with a game that is played for it; a broken link is an error.
docs: $(VENV)/.docs
	mkdir -p build
	$(BIN)/cuasmrl play $(RECORDED) --record build/recorded-game.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "to read it: $(BIN)/python -m http.server -b 127.0.0.1 -d build/site 8000"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# $(call debian,PACKAGES,WHAT): install Debian packages where we may, else say what is missing.
define debian
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(1); \
else \
    echo "$(2) is missing; install it (Debian: apt-get install $(1)) and run make again." >&2; exit 2; \
fi
endef

$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { $(call debian,python3 python3-venv,Python 3.11 or later); }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "$(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12" >&2; exit 2; }
	@# Debian ships venv without ensurepip unless python3-venv is installed.
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { $(call debian,python3-venv,The venv module of $(PYTHON)); }
	@# nvcc runs the host compiler's preprocessor over every .cu file.
	@command -v g++ >/dev/null || { $(call debian,g++,g++); }
	@# Reports are looked at in a browser; without one those tests are skipped, and say so.
	@command -v chromium >/dev/null || ( $(call debian,chromium,Chromium) ) || \
	    echo "Without Chromium the tests that look at reports in a browser are skipped." >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[triton,cuda,rl,gpu,fleet,pages,dev]'
	@touch $@

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
