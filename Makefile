# make run and make test need python3 (3.11 or newer) and make; the first of them fills .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A file of tests stays together: what it shares, such as a server, is made once.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
export PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS ?= 180
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.PHONY: run test test-all check corpus lock clean

run: $(READY)
	$(BIN)/memex run --sample-if-empty

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

test: $(READY)
	$(BIN)/pytest $(PARALLEL) -m "not corpus and not long"

test-all: $(READY)
	$(BIN)/pytest $(PARALLEL)

corpus: $(READY)
	$(BIN)/pytest $(PARALLEL) -m "corpus and not long"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--no-annotate --no-header --no-emit-index-url --quiet -o requirements.lock

clean:
	rm -rf $(VENV) dist build
