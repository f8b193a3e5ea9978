# Two commands matter: `make demo` and `make check`. Both install what packages.txt lists and is missing (as root),
# build, and run; both are quick when nothing changed.
BUILD ?= build
PRESET ?= release

.PHONY: all abi analyze quick check-torch compile torch mlx-packages demo check check-long check-gpu codes deb wheel docs packages configure clean format lint sanitize
# All there is, and build/venv: a virtual environment with this smelt and what the Python tests need. Where pip has no
# network it says so, and the rest is built.
all: configure
	@cmake --build $(BUILD) --target all venv

compile: configure
	@cmake --build $(BUILD)

# PyTorch and JAX into build/venv as well (gigabytes): the tests of them skip without.
torch: all
	@cmake --build $(BUILD) --target venv_torch -- --quiet

# Larger public packages of MLX kernels into build/venv as well: the tests of them skip without.
mlx-packages: all
	@cmake --build $(BUILD) --target venv_mlx_packages -- --quiet

# Debian packages: only what is missing, and only when something is.
packages:
	@sh cmake/install_packages.sh packages.txt

configure: packages
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) -B $(BUILD) > $(BUILD).configure.log 2>&1 \
	  || { cat $(BUILD).configure.log; rm -f $(BUILD).configure.log; exit 1; }
	@rm -f $(BUILD).configure.log

demo: compile
	@$(BUILD)/bin/smelt_demo $(BUILD)/demo

# The number of tests that run at a time: more than the two processors of CONTRIBUTING.md, since some tests mostly wait.
JOBS ?= 4
check: all
	@sh cmake/install_packages.sh --optional packages-check.txt
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

# The tests of smelt.torch and smelt.jax with PyTorch, transformers and JAX, which it installs into build/venv first.
check-torch: torch
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -R 'python_(docs_)?(torch|jax|attention|segmenter|export|example_segment|example_language_model)'

# For the inner loop: builds what changed and runs the tests that take moments. No Python, no fuzzing.
quick: compile
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE 'slow|fuzz|python|long'

# Stores the description of libsmelt's ABI that `make check` compares with: after additions, or with a new SONAME.
abi: compile
	@sh cmake/install_packages.sh packages-check.txt
	@cmake --build $(BUILD) --target abi

# The tests that take hours, as root: LONG is a regular expression of their names. make check-long LONG=csmith.
LONG ?= .
check-long: all
	@sh cmake/install_packages.sh packages-long.txt
	@ctest --test-dir $(BUILD) --output-on-failure -C long -L long -R '$(LONG)'

# A Debian package of the command, the library and its documents: build-deb/smelt_*.deb.
deb: packages
	@sh cmake/install_packages.sh packages-deb.txt
	@cmake --preset deb > build-deb.configure.log 2>&1 || { cat build-deb.configure.log; exit 1; }
	@rm -f build-deb.configure.log
	@cmake --build build-deb
	@cd build-deb && rm -f smelt_*.deb && cpack > cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@ls build-deb/smelt_*.deb

# The wheel that needs nothing installed: build-wheel/smelt-*.whl. cmake/older_systems.Containerfile is for older glibc.
wheel: packages
	@python3 -B cmake/wheel.py build-wheel $(wildcard $(BUILD)/lib/smelt-codes)

# Codes of matrix products for GPUs of compute capability 9.0, which `cmake --install` and `make wheel` then include: first
# calls need not compile. They are PTX, which the driver assembles; `make codes PTXAS=PROGRAM` adds machine code.
codes: compile
	@cmake --build $(BUILD) --target codes

# The API reference: build/docs/c by Doxygen, build/docs/python by pdoc.
docs: all
	@sh cmake/install_packages.sh packages-docs.txt
	@cmake --build $(BUILD) --target venv_docs -- --quiet
	@python3 -B cmake/api_reference.py c $(BUILD)
	@$(BUILD)/venv/bin/python -B cmake/api_reference.py python $(BUILD)

# The kernel test-suite on a GPU, compared with the CPU. Options of tests/gpu/run_suite.py: make check-gpu GPU="--only ml_".
check-gpu: compile
	@python3 tests/gpu/run_suite.py $(BUILD) $(GPU)

# The whole test-suite under AddressSanitizer + UndefinedBehaviorSanitizer, and under ThreadSanitizer.
sanitize: packages
	@$(MAKE) check BUILD=build-asan PRESET=asan
	@$(MAKE) check BUILD=build-tsan PRESET=tsan

format:
	@git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | grep -v '^prelude/' | xargs clang-format-19 -i

# The tests that read the sources: clang-format, clang-tidy, cppcheck, mypy, ruff.
lint: all
	@sh cmake/install_packages.sh --optional packages-check.txt
	@ctest --test-dir $(BUILD) --output-on-failure -L lint -j $(JOBS)

# clang's static analyzer, which takes many minutes. Its findings are to be judged: it does not see, for one, that a status that
# says failure is never SMELT_OK.
analyze: compile
	@python3 -B tests/lint/lint.py clang_tidy_analyzer $(BUILD)

clean:
	@rm -rf $(BUILD)
