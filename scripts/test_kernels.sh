#!/bin/sh
# Run the live tests on other kernels: sh scripts/test_kernels.sh 6.1 6.12 | all
cd "$(dirname "$0")/.." || exit 1
extras='[dev]'
. scripts/venv.sh
packages=""
while read -r program package; do
    command -v "$program" >/dev/null || packages="$packages $package"
done <<LIST
qemu-system-x86_64 qemu-system-x86
busybox busybox-static
zstd zstd
lz4 lz4
gcc gcc
bpftool bpftool
LIST
if [ -n "$packages" ]; then
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null || exit 1
fi
exec "$python" -m tests.vm.matrix "$@"
