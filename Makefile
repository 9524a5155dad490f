PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
KERNELS ?= 6.1 6.12

.PHONY: help bpf fixtures fixtures-check bpf-check abi test test-kernels bench

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 18

bpf: fixtures  ## rebuild the shipped BPF objects, their specs and LOCK, and the tests' (clang 19)
	$(PYTHON) scripts/build_objects.py
	$(PYTHON) scripts/generate_specs.py

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

test:  ## the tests, on this kernel
	sh scripts/test.sh

test-kernels:  ## the live tests in guests: make test-kernels KERNELS="6.1 6.12", or KERNELS=all
	sh scripts/test_kernels.sh $(KERNELS)

bench:  ## measure against bpftrace, side by side
	$(PYTHON) bench/bench.py
	$(PYTHON) bench/summary.py
	$(PYTHON) bench/filter.py
