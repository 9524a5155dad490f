#!/bin/sh
# Run the live tests on other kernels: sh scripts/test_kernels.sh 6.1 6.12 | host | all
# See docs/testing.md.
cd "$(dirname "$0")/.." || exit 1
extras='[dev]'
. scripts/venv.sh
compile_modules || exit 1
. scripts/packages.sh
packages_for_tests
npm_packages_for_tests
[ -z "$PUREBPF_NIGHTLY" ] || { nodes_for_tests; runtimes_for_tests; }
case "$*" in
host | "host --"*) ;; # no guest
*) packages_for_guests || exit 1 ;;
esac
case " $* " in
*" all "* | *arm64*)
    echo "qemu-system-aarch64 qemu-system-arm" | packages || exit 1
    "$python" -m tests.support.programs.arm64 || exit 1 # the guest has no compiler
    ;;
esac
exec "$python" -m tests.vm.matrix "$@"
