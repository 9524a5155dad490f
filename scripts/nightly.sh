#!/bin/sh
# What takes longer than a change can wait for, beside what .ci/run runs: make nightly PARTS="night 5.10"
# With BPFTRACE_COPY=FOLDER, a copy of bpftrace's source with its test programs built, its runtime tests run as well.
# Run it before a release; docs/testing.md has the commit, the date and the result of the last run.
cd "$(dirname "$0")/.." || exit 1
all="night faults fuzz 5.10 6.1 6.12 7.2 6.12-arm64 oldest engines site release"
[ -z "$BPFTRACE_COPY" ] || all="$all conformance"
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
    # two minutes and a half or less for each target: half an hour
    fuzz)
        sh scripts/test.sh --version && sh scripts/fuzz.sh 10 &&
            for target in load btf; do .venv/bin/python tests/fuzz/mutate.py $target --seconds 60 || return; done
        ;;
    # all live tests
    5.* | 6.* | 7.*) PUREBPF_NIGHTLY=1 sh scripts/test_kernels.sh "$1" --reruns 2 ;;
    oldest)
        sh scripts/oldest.sh tests/unit/tools/inspect tests/unit/dataflow tests/unit/wire \
            tests/unit/elf tests/kernel/loader/attach/test_attach_tc.py
        ;;
    # pictures into build/site-pictures, and what axe-core objects to
    site)
        # shellcheck source=scripts/packages.sh
        . scripts/packages.sh
        packages_for_tests && npm_packages_for_tests &&
            .venv/bin/pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat \
                -e ".[docs]" &&
            sh scripts/site.sh && .venv/bin/python -m tests.support.site_pictures
        ;;
    # a worker of a Spark cluster is killed in the middle of a query
    engines)
        .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes \
            --target build/engines -r requirements/engines.txt
        PYTHONPATH=build/engines .venv/bin/python -m pytest -q \
            tests/unit/services/fleet/test_engines.py tests/unit/services/fleet/test_spark_cluster.py
        ;;
    # bpftrace's own tests: on this kernel, and those with kprobes in a guest
    conformance)
        .venv/bin/python scripts/run_conformance.py "${BPFTRACE_COPY:?is not set}" &&
            .venv/bin/python scripts/run_conformance.py "$BPFTRACE_COPY" --kernel 6.12 --patience 20
        ;;
    # built twice, and installed in fresh roots
    release) ROOTS=yes sh scripts/release/release.sh ;;
    *)
        echo "there is no part $1: $all" >&2
        return 2
        ;;
    esac
}

for name in ${PARTS:-$all}; do
    printf '\n== %s\n' "$name"
    begun=$(date +%s)
    part "$name" && result=passed || result=failed status=1
    echo "$(date +%F) $commit $name $result $(($(date +%s) - begun)) s" | tee -a $results
done
exit $status
