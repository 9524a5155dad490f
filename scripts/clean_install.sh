#!/bin/sh
# What a newcomer does, in empty directories: clone, profile; build the wheel, install it without
# the tree, profile again from elsewhere with no compiler on PATH; the same with the zipapp, with what
# an image of a container has (a folder that nothing can write to) and with what PyInstaller makes.
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
PATH="$work/venv/bin" python -P -m purebpf doctor --json >"$work/doctor.json"
grep -q '"commands"' "$work/doctor.json"

sh "$tree/scripts/zipapp.sh" "$work/purebpf.pyz" >"$work/zipapp.txt"
"$work/purebpf.pyz" profile -f -F 999 -- /bin/sh -c "$loop" >"$work/pyz.txt"
grep -q '^sh;' "$work/pyz.txt"
python3 -m zipfile -e "$work/purebpf.pyz" "$work/unpacked"
grep -q '"specVersion": "1.6"' "$work/unpacked/sbom.cdx.json"

"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile \
    --target "$work/image" "$wheel"
# shellcheck disable=SC2016 # the inner shell expands these
unshare --mount sh -euc '
    mount --bind "$1" "$1"
    mount -o remount,bind,ro "$1"
    if touch "$1/written" 2>/dev/null; then exit 1; fi
    exec env -i HOME=/dev/null/home PATH=/nonexistent PYTHONPATH="$1" \
        "$2" -m purebpf profile -f -F 999 -- /bin/sh -c "$3"
' sh "$work/image" "$(readlink -f "$work/venv/bin/python")" "$loop" >"$work/image.txt"
grep -q '^sh;' "$work/image.txt"

awk '/^[a-z]/ { keep = /^(altgraph|packaging|pyinstaller|pyinstaller-hooks-contrib|setuptools)==/ }
    keep' "$tree/requirements/ci.txt" >"$work/freezer.txt"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
    --requirement "$work/freezer.txt"
cp "$tree/scripts/frozen_tool.py" "$work/tool.py"
(cd "$work" && venv/bin/python -m PyInstaller --noconfirm --log-level ERROR tool.py 2>"$work/freezer.log") ||
    { cat "$work/freezer.log" && exit 1; }
rm -rf "$work/venv"
env -i "$work/dist/tool/tool" count "$tree/tests/data/load_attach.bpf.o" >"$work/counted.txt"
grep -qx 'counted 23' "$work/counted.txt"
env -i "$work/dist/tool/tool" profile -f -F 999 -- /bin/sh -c "$loop" >"$work/frozen.txt"
grep -q '^sh;' "$work/frozen.txt"
echo "clean clone, wheel, zipapp, read-only folder and frozen program: profiled five times"
