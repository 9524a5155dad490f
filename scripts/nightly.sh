#!/bin/sh
# What takes longer than a change can wait for, beside what .ci/run runs: make nightly PARTS="night 5.10"
# Run it before a release; docs/testing.md has the commit, the date and the result of the last run.
cd "$(dirname "$0")/.." || exit 1
all="night faults 5.10 6.1 6.12 7.2 6.12-arm64 oldest release"
export PUREBPF_CONSTANTS=every
status=0
results=build/nightly
mkdir -p build
commit=$(git rev-parse --short HEAD)

part() {
    case $1 in
    # on this kernel: the tests marked nightly, every command in all surroundings among them
    night) PUREBPF_KERNEL=ci PUREBPF_NIGHTLY=only sh scripts/test_kernels.sh host --reruns 1 ;;
    # every call of bpf(2) and perf_event_open(2) fails once with every error
    faults)
        PUREBPF_KERNEL=ci PUREBPF_NIGHTLY=1 PUREBPF_FAULTS=every sh scripts/test_kernels.sh host \
            --tests tests/kernel/*/test_fault_*.py tests/kernel/*/*/test_fault_*.py
        ;;
    # all live tests
    5.* | 6.* | 7.*) PUREBPF_NIGHTLY=1 sh scripts/test_kernels.sh "$1" --reruns 2 ;;
    oldest)
        sh scripts/oldest.sh tests/unit/tools/inspect tests/unit/dataflow tests/unit/wire \
            tests/unit/elf tests/kernel/loader/attach/test_attach_tc.py
        ;;
    # built twice, and installed in fresh roots
    release) ROOTS=yes sh scripts/release/release.sh ;;
    *)
        echo "there is no part $1: $all" >&2
        return 2
        ;;
    esac
}

<<<<<<< HEAD
for name in ${PARTS:-$all}; do
    printf '\n== %s\n' "$name"
    begun=$(date +%s)
    part "$name" && result=passed || result=failed status=1
    echo "$(date +%F) $commit $name $result $(($(date +%s) - begun)) s" | tee -a $results
done
=======
step "the live tests in guests: 5.10, 6.1, 6.12, 7.2, and 6.12 on arm64"
sh scripts/test_kernels.sh 5.10 6.1 6.12 7.2 6.12-arm64 --reruns 2 || status=1

step "the oldest packages that setup.cfg allows"
sh scripts/oldest.sh tests/unit/tools/inspect tests/unit/dataflow tests/unit/wire tests/unit/elf \
    tests/kernel/loader/attach/test_attach_tc.py || status=1

step "the site in a browser: pictures into build/site-pictures, and what axe-core objects to"
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
if ! { npm_packages_for_tests && sh scripts/site.sh && .venv/bin/python -m tests.support.site_pictures; }; then
    status=1
fi

step "a release: built twice, and installed in fresh roots"
ROOTS=yes sh scripts/release/release.sh || status=1
>>>>>>> 67f8bd205 (An unknown option is named first; the referee has austin and CPython's sampler; the site is clean for axe-core)
exit $status
