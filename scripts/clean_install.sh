#!/bin/sh
# What a newcomer does, in empty directories: clone, profile; build the wheel, install it without
# the tree, profile again from elsewhere with no compiler on PATH; the same with the zipapp.
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
loop='i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
PATH="$work/venv/bin" purebpf profile -f -F 999 -- \
    /bin/sh -c "$loop" >"$work/wheel.txt"
grep -q '^sh;' "$work/wheel.txt"
PATH="$work/venv/bin" python -P -m purebpf.doctor --json >"$work/doctor.json"
grep -q '"commands"' "$work/doctor.json"

sh "$tree/scripts/zipapp.sh" "$work/purebpf.pyz" >"$work/zipapp.txt"
"$work/purebpf.pyz" profile -f -F 999 -- /bin/sh -c "$loop" >"$work/pyz.txt"
grep -q '^sh;' "$work/pyz.txt"
python3 -m zipfile -e "$work/purebpf.pyz" "$work/unpacked"
grep -q '"specVersion": "1.6"' "$work/unpacked/sbom.cdx.json"
echo "clean clone, wheel and zipapp: profiled three times"
