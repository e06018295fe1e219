# Every target does its own set-up: a virtual environment in .venv, made once per pyproject.toml.
#   make demo              train a network on handwritten digits and draw what it learned
#   make test              lint, type check, all tests (ORACLE=no does not install JAX),
#                          and the compiler's once more as on a processor with AVX2 only
#   make checked           all tests with native code that tests each address, class and index it uses
#   make bounds        the laws and random programs with arrays between pages nobody may touch
#   make compare       generated calls of the public functions beside JAX (SEED=... COUNT=...)
#   make fuzz          random programs, run in ways that have to agree (SEED=... COUNT=...)
#   make sharded       generated sharded programs on devices and processes (SEED=... COUNT=...), and
#                      a transformer's step and other parallel examples
#   make soak          mixed programs on 16 threads with forks and interrupts (SECONDS=300)
#   make portability       the compiler's tests as on each kind of x86-64 processor that this one can
#                          be; all tests with the oldest packages that pyproject.toml admits, with the
#                          newest, and with each other Python that is found (PYTHONS=... names them)
#   make arm               acceptance, laws and the compiler's tests (one in EVERY) on an ARM64 processor
#                          that qemu emulates (tools/arm.py says what is missing for that)
#   make answers           ask JAX anew for all that tests compare with (tests/answers)
#   make slow              tests that take minutes or 14 GB of memory, one after the other
#   make bench             time numjet beside its peers (ROWS=softmax,matmul runs a part)
#   make ecosystem         run the tests of JAX's libraries on numjet and on JAX (docs/ecosystem.md;
#                          LIBRARIES=optax,chex runs those alone)
#   make faults            train on three processes, a rank of which is killed at a random moment, 200
#                          times (RUNS=20: fewer): none may hang, or lose more than the last step
#   make xla-compile       compile our programs for TPUs and GPUs that are not here (docs/gpu.md)
#   make gpu               tests of XLA's devices, acceptance, the demo and a benchmark on the GPU
#                          that is here, within MINUTES=60 (JAX=/path/to/python runs it beside JAX;
#                          GPU_PYTHON=/path/to/python uses what is there and installs nothing)
#   make clean             remove what the other targets made

# The first Python on the path that is new enough and can make virtual environments.
CAN_MAKE_VENV := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c '$(CAN_MAKE_VENV)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
ORACLE ?= yes
ORACLE_STAMP := $(if $(filter yes,$(ORACLE)),.venvs/oracle/.installed)
WORKERS ?= 2
SEED ?= $(shell expr $$(date +%s) / 86400 \* 1000)
COUNT ?= 300
SECONDS ?= 300
ROWS ?=
RUNS ?= 200
MINUTES ?= 60
EVERY ?= 12
LIBRARIES ?=
comma := ,
BENCH_FLAGS ?=
# Tests start hundreds of Python processes, each of which would compile every source file anew.
export PYTHONDONTWRITEBYTECODE :=
PIP_FLAGS := --quiet --disable-pip-version-check

# Tests of what the compiler makes, which differs with the processor; with the examples that every
# version has to run, where the project's documents lie beside the repository.
COMPILER_TESTS := tests/cpu tests/laws tests/test_readme.py
ACCEPTANCE ?= $(wildcard ../shared/acceptance/seed_examples.py)
LEVELS := x86-64-v2 x86-64-v3 x86-64-v4
on_level = $(RUN) tools/on_level.py $(1) $(RUN)
# The oldest packages have no builds for Pythons that are newer than they.
VERSIONS := $(shell $(PYTHON) -c 'import sys; sys.version_info[:2] == (3, 11) and print("lowest")') newest
PYTHONS ?= $(shell for p in python3.12 python3.13 python3.14 python3.13t python3.14t; do \
	$$p -c '$(CAN_MAKE_VENV)' 2>/dev/null && echo $$p; done)
TEST_TOOLS := pytest pytest-xdist hypothesis mpmath

.PHONY: faults sharded demo test checked bounds fuzz compare slow portability $(LEVELS) $(VERSIONS) $(PYTHONS) bench ecosystem xla-compile gpu clean

demo: $(VENV)/.installed-demo
	$(RUN) examples/digits.py

test: $(VENV)/.installed-test $(ORACLE_STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(RUN) -m pytest -q -n $(WORKERS)
	$(RUN) tools/ecosystem.py --quick
	$(call on_level,x86-64-v3) -m pytest -q -n $(WORKERS) $(COMPILER_TESTS)

checked: $(VENV)/.installed-test $(ORACLE_STAMP)
	NUMJET_NATIVE_CHECKS=1 $(RUN) -m pytest -q -n $(WORKERS)

bounds: $(VENV)/.installed-test
	NUMJET_CHECK_BOUNDS=1 $(RUN) -m pytest -q -n $(WORKERS) tests/laws tests/cpu/test_random_programs.py
	NUMJET_CHECK_BOUNDS=1 $(RUN) tools/fuzz.py $(SEED) $(COUNT) --jobs $(WORKERS)

compare: $(VENV)/.installed-test .venvs/oracle/.installed
	$(RUN) tools/compare.py $(SEED) $(COUNT) --jobs $(WORKERS)

fuzz: $(VENV)/.installed-test $(ORACLE_STAMP)
	$(RUN) tools/fuzz.py $(SEED) $(COUNT) --jobs $(WORKERS) $(if $(ORACLE_STAMP),--jax 10)

.PHONY: soak
soak: $(VENV)/.installed-test
	PYTHONPATH=tools $(RUN) tools/soak.py --seconds $(SECONDS)

.PHONY: answers
answers: $(VENV)/.installed-test .venvs/oracle/.installed
	$(RUN) tools/oracle_answers.py

slow: $(VENV)/.installed-test
	$(RUN) -m pytest -q -m slow

portability: $(LEVELS) $(VERSIONS) $(PYTHONS)

$(LEVELS): $(VENV)/.installed-test
	$(call on_level,$@) -m pytest -q -n $(WORKERS) $(COMPILER_TESTS)
	$(if $(ACCEPTANCE),$(call on_level,$@) $(ACCEPTANCE) numjet)

$(VERSIONS) $(PYTHONS): %: .venvs/%/.installed $(ORACLE_STAMP)
	.venvs/$@/bin/python -m pytest -q -n $(WORKERS)
	$(if $(ACCEPTANCE),.venvs/$@/bin/python $(ACCEPTANCE) numjet)

.PHONY: arm
arm: $(VENV)/.installed-test
	$(if $(ACCEPTANCE),$(RUN) tools/arm.py $(ACCEPTANCE) numjet)
	$(RUN) tools/arm.py -m pytest -q -p no:cacheprovider --every $(EVERY) tests/laws tests/cpu

bench: $(VENV)/.installed-demo .venvs/oracle/.installed .venvs/torch/.installed .venvs/numba/.installed
	$(RUN) benchmarks/run.py $(if $(ROWS),--rows $(ROWS)) $(BENCH_FLAGS)

faults: $(VENV)/.installed-test
	$(RUN) tools/faults.py --runs $(RUNS)

sharded: $(VENV)/.installed-test
	$(RUN) tools/six_ways.py
	$(RUN) tools/sharded.py $(SEED) $(COUNT)

# The compilers' wheels are large and lie apart; those that cannot be installed are left out.
.venvs/plugins/.installed:
	mkdir -p $(@D)
	$(RUN) -m pip install $(PIP_FLAGS) --no-deps --target $(@D) libtpu==0.0.51 || true
	$(RUN) -m pip install $(PIP_FLAGS) --no-deps --target $(@D) jax-cuda13-pjrt==0.12.0.1 || true
	touch $@

xla-compile: $(VENV)/.installed-test .venvs/plugins/.installed
	PYTHONPATH=.venvs/plugins $(RUN) tools/xla_compile.py

$(VENV)/.installed-gpu: pyproject.toml | $(RUN)
	$(RUN) -m pip install $(PIP_FLAGS) -e '.[test,cuda13]'
	touch $@

gpu: $(if $(GPU_PYTHON),,$(VENV)/.installed-gpu)
	$(or $(GPU_PYTHON),$(RUN)) tools/gpu.py cuda $(if $(JAX),--jax $(JAX)) --minutes $(MINUTES)

ecosystem: $(VENV)/.installed-test
	$(RUN) tools/ecosystem.py $(subst $(comma), ,$(LIBRARIES))

$(RUN):
	@test -n "$(PYTHON)" || { echo "numjet needs Python 3.11 or newer with the venv module; \
	none was found. Install one, or name it: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml | $(RUN)
	$(RUN) -m pip install $(PIP_FLAGS) -e '.[demo]'
	touch $@

$(VENV)/.installed-test: pyproject.toml tests/xla-requirements.txt | $(RUN)
	$(RUN) -m pip install $(PIP_FLAGS) -e '.[test]'
	$(RUN) -m pip install $(PIP_FLAGS) --no-deps --require-hashes -r tests/xla-requirements.txt
	touch $@ $(VENV)/.installed-demo

# JAX, which the tests compare with and never import, in an environment of its own.
.venvs/oracle/.installed: tests/oracle-requirements.txt | $(RUN)
	$(RUN) -m venv .venvs/oracle
	.venvs/oracle/bin/python -m pip install $(PIP_FLAGS) -r $<
	touch $@

.venvs/lowest/.installed: tests/lowest-requirements.txt pyproject.toml | $(RUN)
	$(RUN) -m venv $(@D)
	$(@D)/bin/python -m pip install $(PIP_FLAGS) -r $<
	$(@D)/bin/python -m pip install $(PIP_FLAGS) $(TEST_TOOLS) -e .
	touch $@

.venvs/newest/.installed: pyproject.toml | $(RUN)
	$(RUN) -m venv $(@D)
	$(@D)/bin/python -m pip install $(PIP_FLAGS) --upgrade --upgrade-strategy eager $(TEST_TOOLS) -e .
	touch $@

$(PYTHONS:%=.venvs/%/.installed): .venvs/%/.installed: pyproject.toml
	$* -m venv $(@D)
	$(@D)/bin/python -m pip install $(PIP_FLAGS) $(TEST_TOOLS) -e .
	touch $@

# The other packages of the benchmark. One that cannot be installed is left out of the results.
.venvs/torch/.installed: PACKAGES := torch==2.13.0 numpy
.venvs/numba/.installed: PACKAGES := numba numpy scipy
.venvs/torch/.installed .venvs/numba/.installed: | $(RUN)
	$(RUN) -m venv $(@D)
	$(@D)/bin/python -m pip install $(PIP_FLAGS) $(PACKAGES) || rm -rf $(@D)/bin/python
	touch $@

clean:
	rm -rf $(VENV) .venvs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find numjet tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
