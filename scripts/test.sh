#!/bin/sh
# Run the tests: sh scripts/test.sh [pytest arguments]
# The programs that tests compare with come from Debian where apt-get can bring them; a test whose
# program is missing is skipped, and says so.
cd "$(dirname "$0")/.." || exit 1
extras='[dev]'
. scripts/venv.sh

packages=""
while read -r program package; do
    command -v "$program" >/dev/null || packages="$packages $package"
done <<LIST
clang-19 clang-19
llvm-strip-19 llvm-19
bpftool bpftool
readelf binutils
gcc gcc
go golang-go
g++ g++
xz xz-utils
perf linux-perf
make make
LIST
[ -e /usr/include/bpf/bpf_helpers.h ] || packages="$packages libbpf-dev"
[ -e /usr/include/linux/bpf.h ] || packages="$packages linux-libc-dev"
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null ||
        echo "apt-get could not install:$packages" >&2
fi
exec "$python" -m pytest "$@"
