# Two commands set everything up on a fresh machine: `make app` and `make test`. `make` alone lists all of them.

ifneq ($(words $(CURDIR)),1)
$(error The path '$(CURDIR)' has a blank, which make cannot handle; move the checkout to a path without one)
endif

PORT ?= 8501
ARGS ?=
PYTEST_ARGS ?=

# As root the embedded Postgres runs as a separate user that must be able to read its program files, so a checkout in a
# private folder keeps its environment elsewhere.
VENV ?= $(shell place="$(CURDIR)/.venv"; at="$(CURDIR)"; \
	if [ "$$(id -u)" = 0 ]; then while [ "$$at" != / ]; do \
		ls -ld "$$at" | grep -Eq '^d...r.[xs]r.[xt]' || { \
			place="/var/lib/rag-workbench/venv-$$(printf %s "$(CURDIR)" | cksum | cut -d' ' -f1)"; break; }; \
		at="$$(dirname "$$at")"; done; fi; echo "$$place")
BIN := $(VENV)/bin
RESOLVE := -q --universal --generate-hashes --no-header --no-annotate $(ARGS)
WHOLE := --extra app --extra crawl --extra eval --extra llm --group weights
APP_READY := $(VENV)/.ready-app
TEST_READY := $(VENV)/.ready-test

# Some tests start servers as another user, which forks: OpenBLAS's threads may then hang (workbench/runtime.py).
export OPENBLAS_NUM_THREADS := 1
unexport PYTHONDONTWRITEBYTECODE # else each process that a test starts compiles all modules anew, for seconds

.DEFAULT_GOAL := help
.PHONY: help app mcp worker evals bench wheel mcpb test drills quick check conformance format lock chromium docs site rehearse release clean pgbouncer

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

app: $(APP_READY) ## Set everything up and serve the app at http://localhost:$(PORT) (PORT= for another)
	@$(BIN)/workbench app --port $(PORT) $(ARGS)

mcp: $(APP_READY) ## Serve the tools to agents over MCP (ARGS="--transport http" for HTTP)
	@$(BIN)/workbench mcp $(ARGS)

worker: $(APP_READY) ## Run the background jobs
	@$(BIN)/workbench worker $(ARGS)

evals: $(TEST_READY) ## Measure every strategy on the sample questions (ARGS= for other data)
	@$(BIN)/workbench eval $(or $(ARGS),sample --baseline evals/baselines/sample.json --ragas none)

bench: $(TEST_READY) ## Measure speed (ARGS="--passages 100000")
	@$(BIN)/python -m benchmarks $(ARGS)

wheel: $(TEST_READY) ## Build the wheel into dist/, with the model's weights in it
	$(BIN)/python -c "from hatchling.build import build_wheel; print('dist/' + build_wheel('dist'))"

mcpb: $(TEST_READY) ## Build the bundle for desktop clients into dist/
	$(BIN)/python mcpb_build.py dist

test: $(TEST_READY) chromium pgbouncer ## Run every test, the notebooks included
	@$(BIN)/python tests/conformance/fetch.py
ifeq ($(strip $(PYTEST_ARGS)),)
	$(BIN)/python -m pytest -m "not browser" -n 3 --dist loadfile --no-loadscope-reorder --ignore tests/browser
	$(BIN)/python -m pytest -m browser -n 2 --dist loadfile --no-loadscope-reorder tests/browser tests/*/test_browser.py
else
	$(BIN)/python -m pytest $(PYTEST_ARGS)
endif
	@if ls notebooks/*.ipynb >/dev/null 2>&1; then $(BIN)/python -m pytest --nbval notebooks -n 2 --dist loadfile; fi

quick: $(TEST_READY) ## Run the tests that need neither Postgres nor a browser, in under 30 s
	$(BIN)/python -m pytest -q -m quick -n 2 --dist loadfile -p no:nbval $(PYTEST_ARGS)

drills: $(TEST_READY) ## Run the random drills for longer (process kills and more; DRILL_SECONDS=600 each)
	$(BIN)/python -m pytest tests/drills -p no:nbval --drill-seconds $(or $(DRILL_SECONDS),600) --timeout 7200 $(PYTEST_ARGS)

check: $(TEST_READY) ## Check format, lint, sizes, signatures, scripts, imports, dependencies and types, in under 90 s
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/gate/sizes.py
	$(BIN)/python tests/gate/signatures.py
	$(BIN)/python tests/gate/ratchet.py
	$(BIN)/oxlint --format=unix -c tests/gate/oxlint.json workbench
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry workbench mcp_app evals benchmarks
	$(BIN)/pyright --pythonpath $(BIN)/python --threads 2

conformance: $(TEST_READY) ## Run the protocol's official conformance suite on the MCP server (gets Node 22 from npm)
	@$(BIN)/python tests/conformance/fetch.py --required
	$(BIN)/python -m pytest tests/conformance

format: $(TEST_READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(TEST_READY) ## Generate the tables of docs/reference and docs/evaluation.md, and .env.example, from the code
	$(BIN)/python tests/written_tables.py

site: $(TEST_READY) ## Build the documentation site in artifacts/site/html, and check its links
	@$(BIN)/python -m docs.site.build

release: $(TEST_READY) ## Fill dist/ from a tagged commit: wheel, bundle, SBOM, digests (reports mismatches)
	@$(BIN)/python deploy/release.py

rehearse: $(TEST_READY) ## Build the image and run every service of docker-compose.yml (root on Debian; gets podman, takes 10 min)
	@command -v podman runc debootstrap >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends podman runc debootstrap >/dev/null; }
	$(BIN)/python deploy/rehearse.py

lock: $(VENV)/.created ## Write the lock files from pyproject.toml (ARGS=--upgrade for newer versions)
	$(BIN)/uv pip compile $(RESOLVE) $(WHOLE) pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile $(RESOLVE) $(WHOLE) --group dev pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile $(RESOLVE) --extra app --extra crawl --extra llm --extra otel --group weights --overrides deploy/leave-out.txt \
		--constraints requirements.lock pyproject.toml -o requirements-image.lock

clean: ## Remove the environment (documents and models stay in WORKBENCH_HOME)
	rm -rf $(VENV) artifacts dist

# --- the environment ---------------------------------------------------------------------------------------------

SUITS := -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1

$(VENV)/.created:
	@if $(BIN)/python $(SUITS); then exit 0; fi; \
	python=""; for try in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
		if $$try $(SUITS); then python=$$try; break; fi; done; \
	if [ -z "$$python" ]; then \
		echo "No Python 3.11, 3.12 or 3.13 was found; install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	mkdir -p "$(dir $(VENV))"; \
	echo "Making the environment with $$($$python --version)" >&2; \
	$$python -m venv --clear "$(VENV)" || { \
		echo "$$python cannot make an environment; on Debian and Ubuntu install its package python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install -q uv || echo "uv is not to be had; pip takes its place, which is slower" >&2
	@touch $@

# $(call install,LOCK): exactly what the lock lists, then this project, so that edits take effect immediately. uv links files
# to its cache, but NLTK refuses to read linked data, which LlamaIndex's sentence splitter needs: that package is copied.
define install
	@echo "Installing $(1)" >&2
	@if $(BIN)/uv pip install -q --python $(BIN)/python --no-deps --require-hashes -r $(1) && \
		$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --require-hashes -r $(1) \
			--link-mode copy --reinstall-package llama-index-core && \
		$(BIN)/uv pip install -q --python $(BIN)/python --no-deps -e .; then exit 0; fi; \
	echo "Trying the same with pip" >&2; \
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r $(1) && \
	$(BIN)/python -m pip install -q --no-deps -e .
endef

$(APP_READY): requirements.lock pyproject.toml | $(VENV)/.created
	$(call install,requirements.lock)
	@touch $@

$(TEST_READY): requirements-dev.lock pyproject.toml | $(VENV)/.created
	$(call install,requirements-dev.lock)
	@touch $@ $(APP_READY)

chromium:
	@for try in "$$CHROMIUM" chromium chromium-browser google-chrome "/Applications/Chromium.app/Contents/MacOS/Chromium" \
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do \
		if [ -n "$$try" ] && command -v "$$try" >/dev/null 2>&1; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing Chromium for the browser tests" >&2; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
			fonts-liberation >/dev/null; \
	else \
		echo "The browser tests need Chromium: install the package 'chromium' (or Google Chrome), or set CHROMIUM to its path" >&2; \
		exit 1; \
	fi

pgbouncer:
	@if PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v pgbouncer >/dev/null 2>&1; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing pgbouncer for the tests of a pooler" >&2; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null; \
	else \
		echo "The tests of a pooler need pgbouncer: install the package of that name" >&2; \
		exit 1; \
	fi
