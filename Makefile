PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
KERNELS ?= 6.1 6.12
BENCHES ?= profiler start whole_runs summary offcpu filter record reading writing map_element loading report page symbols unwind stacks mixed python trace latency lock stat script fleet

.PHONY: help fast bpf format format-check fixtures fixtures-check bpf-check abi formats test test-kernels nightly release bench

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 18

bpf: fixtures  ## rebuild the shipped BPF objects, their specs and LOCK, and the tests' (clang 19)
	$(PYTHON) scripts/build_objects.py
	$(PYTHON) scripts/generate_specs.py

format:  ## format bpf_src/ in the style of bpf_src/.clang-format (clang-format 19)
	find bpf_src -name '*.[ch]' -exec clang-format-19 -i {} +

format-check:  ## prove that bpf_src/ has that style
	find bpf_src -name '*.[ch]' -exec clang-format-19 --dry-run --Werror {} +

fixtures:  ## rebuild the BPF objects that tests read (clang 19, bpftool)
	$(PYTHON) scripts/build_fixtures.py

fixtures-check:  ## prove that they are what clang makes of tests/data/
	$(PYTHON) scripts/build_fixtures.py --check

bpf-check:  ## prove that the shipped objects are what clang makes of bpf_src/
	$(PYTHON) scripts/build_objects.py --check
	$(PYTHON) scripts/generate_specs.py --check

abi:  ## regenerate the kernel's tables from this kernel's BTF
	$(PYTHON) scripts/generate_abi.py
	$(PYTHON) scripts/generate_abi.py --check

formats:  ## regenerate the struct formats of file headers from their declarations
	$(PYTHON) scripts/generate_formats.py

fast:  ## the pure and meta tests that are not marked slow: a minute
	$(PYTHON) -m pytest -q -m "not slow" tests/unit tests/meta

test:  ## the tests, on this kernel
	sh scripts/test.sh

test-kernels:  ## the live tests in guests: make test-kernels KERNELS="6.1 6.12", or KERNELS=all
	sh scripts/test_kernels.sh $(KERNELS)

nightly:  ## what does not fit into .ci/run: every command in all surroundings, all kernels
	sh scripts/nightly.sh

release:  ## build all files of a release twice, compare, and install them in fresh roots of Debian
	ROOTS=yes sh scripts/release/release.sh

bench:  ## measure against bpftrace, libbpf, perf, bcc, py-spy, ... side by side; tables into docs/performance.md
	for bench in $(BENCHES); do echo "== $$bench"; $(PYTHON) bench/$$bench.py || missed=1; done; \
	$(PYTHON) bench/results.py && [ -z "$$missed" ]
