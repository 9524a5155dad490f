#!/bin/sh
# What takes longer than a change can wait for: every command in all surroundings, and all kernels.
# Run it before a release; docs/testing.md has the commit, the date and the result of the last run.
cd "$(dirname "$0")/.." || exit 1
export PUREBPF_NIGHTLY=1 PUREBPF_FAULTS=every PUREBPF_CONSTANTS=every
status=0
step() { printf '\n== %s\n' "$*"; }

step "all live tests on this kernel, every command in all surroundings"
PUREBPF_KERNEL=ci sh scripts/test_kernels.sh host --reruns 1 || status=1

step "the live tests in guests: 5.10, 6.1, 6.12, 7.2, and 6.12 on arm64"
sh scripts/test_kernels.sh 5.10 6.1 6.12 7.2 6.12-arm64 --reruns 2 || status=1

step "the oldest packages that setup.cfg allows"
sh scripts/oldest.sh tests/unit/tools/inspect tests/unit/dataflow tests/unit/wire tests/unit/elf \
    tests/kernel/loader/attach/test_attach_tc.py || status=1

step "a release: built twice, and installed in fresh roots"
ROOTS=yes sh scripts/release/release.sh || status=1
exit $status
