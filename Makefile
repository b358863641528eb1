# Every target sets up .venv by itself; nothing needs to be installed beforehand but Python, a C++ compiler and make.
#
#   make demo       run the main job on embedded data and leave demo-report/report.html (and path.html)
#   make test       quick tests (about 9 minutes on two cores): every model, member and command, large grids by samples
#   make test-all   all tests, slow ones and whole grids included, and the kernels under sanitizers
#   make test-torch the tests of devices, on the processor: installs torch, a build for the processor where there is one
#   make test-gpu   those that need a GPU, on this machine's
#   make test-portable   some of them as other processors would run them: narrow long double, older BLAS, 1 and 2 threads
#   make test-r     the tests of the R package, with the R that is here (Debian's has all it needs); make check-r: R CMD check
#   make coverage   the quick tests, and which lines they run (from Python 3.12 on `make test` says so too)
#   make test-peers intervals beside those of hidimstat, skein-glm and MAPIE, which it installs
#   make test-lowest   the core's tests with the oldest dependencies that pyproject.toml allows
#   make wheel      wheels in dist/, tried in empty environments without a compiler
#   make lint       ruff and mypy; mypy --strict and pyright on a script as a user writes it
#   make bench      the benchmarks: about 8 hours on two idle cores (it says so, and how long each takes)
#   make bench-quick   every benchmark at tiny sizes, to see that it works (10 minutes on two cores are promised, 8 measured)
#   make docs       the documentation, warnings are errors, every link is checked: docs/_build/html/index.html
#   make figures    the pictures of the README and the documentation, from real runs
#   make clean      remove what the targets above made, the environment included

PYTHON ?= python3
VENV   ?= .venv
PYTEST_ARGS ?=

PY  := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check

KERNELS := $(wildcard src/tasksieve/_kernels/*.cpp src/tasksieve/_kernels/*.hpp src/tasksieve/_kernels/*.h)

# A kernel that does not compile is an error here, and no reason to run on the twins.
export TASKSIEVE_NEED_KERNELS = 1

# An editable install knows the modules by name: a new, moved or deleted file installs it anew.
MODULES := $(VENV)/.modules-$(shell find src -name '*.py' | LC_ALL=C sort | cksum | cut -d ' ' -f 1)

.PHONY: demo test coverage test-all test-portable test-torch test-gpu test-peers test-lowest test-r check-r wheel sanitize lint format bench bench-quick docs figures clean
.DELETE_ON_ERROR:

demo: $(VENV)/.package $(VENV)/.extra-report $(VENV)/.extra-cli $(VENV)/.extra-files
	$(PY) examples/demo.py --out demo-report

# Which lines are run costs little to know from Python 3.12 on (sys.monitoring). Before that a tracer is called for every
# line, which made a part of the tests half as long again: there it is left to `make coverage`.
MONITORED = $(shell $(PY) -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "")')
COVER = $(if $(MONITORED),--cov)

# Hundreds of processes start during the tests: what they import is compiled once, whatever the environment says.
test coverage test-all test-torch test-lowest: export PYTHONDONTWRITEBYTECODE =

coverage: COVER = --cov
test coverage: $(VENV)/.package $(VENV)/.extra-test
	@.ci/browser
	COVERAGE_CORE=$(or $(MONITORED),ctrace) $(PY) -m pytest -n auto --dist worksteal -m "not slow" $(COVER) $(PYTEST_ARGS)

test-all: sanitize $(VENV)/.package $(VENV)/.extra-test
	@.ci/browser
	$(PY) -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

test-portable: $(VENV)/.package $(VENV)/.extra-test
	.ci/portable $(PY)

test-torch: $(VENV)/.package $(VENV)/.extra-test
	@.ci/torch $(PY) any
	$(PY) -m pytest -m "not slow" tests/device $(PYTEST_ARGS)

test-peers: $(VENV)/.package $(VENV)/.extra-test $(VENV)/.extra-peers
	$(PY) -m pytest -k "hidimstat or skein or mapie" tests/findings/test_debiased.py tests/linear/test_conformal.py $(PYTEST_ARGS)

test-gpu: $(VENV)/.package $(VENV)/.extra-test $(VENV)/.extra-gpu
	$(PY) -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "torch sees no CUDA device here")'
	$(PY) -m pytest -m gpu tests $(PYTEST_ARGS)

# Its own environment, and a module of its own: an editable one would share the folder of the ordinary build.
LOWEST := .venv-lowest
CORE := $(addprefix tests/,kernels losses penalties screening design path linear tasks fitted proof verify tables runs graph online \
  genotypes cluster assistants test_problem_file.py)

test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal -m "not slow" $(CORE) $(PYTEST_ARGS)

$(LOWEST)/.installed: pyproject.toml CMakeLists.txt .ci/lowest $(KERNELS) $(shell find src -name '*.py')
	$(MAKE) VENV=$(LOWEST) $(LOWEST)/.build
	$(LOWEST)/bin/python .ci/lowest > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install -q --prefer-binary -r $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install -q --no-build-isolation --no-deps -Cbuild-dir=build/lowest .
	touch $@

# The R package. What Debian's reticulate can use (NumPy before 2) is in an environment of its own, on the kernels built for .venv.
R_VENV := .venv-r

test-r check-r: $(VENV)/.package $(R_VENV)/.installed
	.ci/r $@ $(R_VENV) "$$(cd /; $(abspath $(PY)) -c 'from tasksieve._kernels import _core; print(_core.__file__)')"

$(R_VENV)/.installed: r/inst/python/requirements.txt | $(PY)
	$(PY) -m venv $(R_VENV)
	$(R_VENV)/bin/python -m pip --disable-pip-version-check install -q -r r/inst/python/requirements.txt
	$(R_VENV)/bin/python -c 'import sysconfig; print("$(abspath src)", file=open(sysconfig.get_path("purelib") + "/tasksieve.pth", "w"))'
	touch $@

# WHEEL_PYTHONS: interpreters; by default those of python3.11 to python3.14 that are there.
wheel: $(PY)
	$(PY) .ci/wheel $(WHEEL_PYTHONS)

lint: $(VENV)/.package $(VENV)/.extra-lint
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m mypy --config-file tests/typing/mypy.ini tests/typing/user_script.py
	@# pyright is JavaScript: its wheel has all of it but node
	if command -v node >/dev/null; then $(PY) -m pyright -p tests/typing/pyrightconfig.json; else echo "pyright: left out, there is no node"; fi

format: $(VENV)/.extra-lint
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(VENV)/.package $(VENV)/.extra-bench
	$(PY) benchmarks/run_all.py $(BENCH_ARGS)

bench-quick: $(VENV)/.package $(VENV)/.extra-bench
	$(PY) benchmarks/run_all.py --quick

docs: $(VENV)/.package $(VENV)/.extra-docs
	$(PY) -m sphinx -W --keep-going -b html docs docs/_build/html
	$(PY) docs/check_links.py docs/_build/html

figures: $(VENV)/.package $(VENV)/.extra-plot $(VENV)/.extra-report
	$(PY) examples/make_figures.py

# --- the kernels under sanitizers: their own tests, without Python, and then those of the module -------
# The instrumented module is built beside the ordinary one and chosen by TASKSIEVE_KERNELS; the sanitizer
# runtimes (and libstdc++, so that exceptions are intercepted) must be in the process before Python starts.
# Output is not captured: a sanitizer ends the process with its report.

SANITIZE_DIR := build/sanitize
PRELOAD = $(foreach lib,libasan.so libubsan.so libstdc++.so,$(shell $(or $(CXX),g++) -print-file-name=$(lib)))

$(SANITIZE_DIR)/.built: $(KERNELS) $(wildcard tests/kernels_cpp/*) CMakeLists.txt $(VENV)/.build
	$(PY) -m cmake -S . -B $(SANITIZE_DIR) -G Ninja -DTASKSIEVE_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV))/bin/ninja -DPython_EXECUTABLE=$(abspath $(PY)) \
	  -Dnanobind_DIR="$$($(PY) -m nanobind --cmake_dir)"
	$(PY) -m cmake --build $(SANITIZE_DIR)
	touch $@

sanitize: export ASAN_OPTIONS = detect_leaks=0
sanitize: export UBSAN_OPTIONS = halt_on_error=1:print_stacktrace=1
sanitize: export TSAN_OPTIONS = halt_on_error=1:die_after_fork=0
sanitize: $(SANITIZE_DIR)/.built $(VENV)/.package $(VENV)/.extra-test
	$(SANITIZE_DIR)/kernel_tests
	@# the runtime for races does not start under every kernel's memory layout
	if $(SANITIZE_DIR)/parallel_tests none; then $(SANITIZE_DIR)/parallel_tests; else echo "parallel_tests: left out"; fi
	TASKSIEVE_KERNELS=$(abspath $(SANITIZE_DIR)) LD_PRELOAD="$(PRELOAD)" PYTHONMALLOC=malloc \
	  $(PY) -m pytest -s -p no:cacheprovider tests/kernels tests/online/test_online.py

# --- the environment: one stamp per thing installed --------------------------------------------------

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# What builds the kernels; installed here so that a rebuild needs no isolated environment.
$(VENV)/.build: | $(PY)
	$(PIP) install -q "scikit-build-core>=0.10" "nanobind>=2.2" cmake ninja
	touch $@

# Editable: Python sources are used where they lie, a change of the kernels or the metadata rebuilds.
$(MODULES): | $(PY)
	rm -f $(VENV)/.modules-*
	touch $@

$(VENV)/.package: pyproject.toml CMakeLists.txt $(KERNELS) $(MODULES) $(VENV)/.build
	$(PIP) install -q --no-build-isolation -e .
	touch $@

# One extra of pyproject.toml, without touching the package itself.
$(VENV)/.extra-%: pyproject.toml $(VENV)/.build
	$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"], sep="\n")' > $(VENV)/extra-$*.txt
	$(PIP) install -q -r $(VENV)/extra-$*.txt
	touch $@

clean:
	rm -rf $(VENV) build dist demo-report docs/_build docs/api/generated docs/gallery docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} +
