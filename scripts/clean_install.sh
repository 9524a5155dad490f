#!/bin/sh
# What a newcomer does, in empty directories: clone, profile; build the wheel, install it without
# the tree, profile again from elsewhere with no compiler on PATH.
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH

git clone --quiet "$tree" "$work/clone"
(cd "$work/clone" && sh scripts/profile.sh 1 >"$work/clone.txt")
grep -q '^Sampling at 49 Hertz' "$work/clone.txt"

"$tree/.venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$work/wheel" "$work/clone"
wheel=$(ls "$work"/wheel/purebpf-*-py3-none-any.whl)
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cd /
# a loop of its own, as an idle machine has no stacks to show
PATH="$work/venv/bin" python -m purebpf.profile -f -F 999 -- \
    /bin/sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' >"$work/wheel.txt"
grep -q '^sh;' "$work/wheel.txt"
PATH="$work/venv/bin" python -m purebpf.doctor --json >"$work/doctor.json"
grep -q '"commands"' "$work/doctor.json"
echo "clean clone and wheel: profiled twice"
