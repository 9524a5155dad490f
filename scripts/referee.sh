#!/bin/sh
# Compare profilers on programs that know the truth: one table, and every run as JSON. Needs root.
#
#     sh scripts/referee.sh [OPTION ...]        options of python -P -m purebpf.testing.referee
#
# It gets the profilers first: perf of this Debian, py-spy and austin from PyPI by hash, and bpftrace of Debian
# unstable and its newest CPythons in roots of their own. build/referee/runs.json has the runs, build/referee/table the
# table; docs/referee.md says what the columns mean.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
# shellcheck source=scripts/release/root.sh
. scripts/release/root.sh
packages <<LIST
perf linux-perf
gcc gcc
g++ g++
debootstrap debootstrap
LIST
out=$PWD/build/referee
mkdir -p "$out/bin"
python=$PWD/.venv/bin/python
[ -x "$out/venv/bin/py-spy" ] || {
    "$python" -m venv "$out/venv"
    "$out/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r requirements/referee.txt
}
make_root sid build/roots/referee bpftrace
root=$PWD/build/roots/referee
cat >"$out/bin/bpftrace" <<WRAPPER
#!/bin/sh
exec chroot $root sh -c 'cd "\$0" 2>/dev/null || cd /; exec bpftrace "\$@"' "\$PWD" "\$@"
WRAPPER
chmod +x "$out/bin/bpftrace"

export PATH="$out/bin:$out/venv/bin:$PATH"
# in a mount namespace of its own, so that nothing is left mounted
# shellcheck disable=SC2016 # the inner shell expands these
exec sh scripts/newest_pythons.sh build/pythons sh -euc '
    root=$1 out=$2 python=$3
    shift 3
    for place in /proc /sys /dev /tmp; do
        mkdir -p "$root$place"
        mount --rbind "$place" "$root$place"
    done
    for program in python3.15 python3.14; do
        if command -v $program >/dev/null; then
            set -- --python $program "$@"
            break
        fi
    done
    perf --version
    bpftrace --version
    py-spy --version
    austin --version
    "$python" --version
    "$python" -P -m purebpf.testing.referee --json "$out/runs.json" "$@" | tee "$out/table"
' sh "$root" "$out" "$python" "$@"
