#!/bin/sh
# One file that runs where only Python 3.11 or newer is: sh scripts/zipapp.sh [FILE]
# purebpf, its BPF objects and what it depends on, each package by the hash in requirements/run.txt;
# no pip and no network where it is copied to. sbom.cdx.json in it says what it is made of.
set -eu
file=$(realpath -m "${1:-build/purebpf.pyz}")
cd "$(dirname "$0")/.."
if [ -n "${WHEEL-}" ]; then python=$PYTHON; else . scripts/venv.sh; fi # of a wheel: by a Python that has it
work=$(mktemp -d)
rm -rf build/lib # setuptools' scratch, where modules of another version may be left
trap 'rm -rf "$work"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$work/app" \
    --require-hashes -r requirements/run.txt
rm -rf "$work/app/bin"
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps \
    --target "$work/app" "${WHEEL:-.}"
"$python" scripts/sbom.py >"$work/app/sbom.cdx.json"
cat >"$work/app/__main__.py" <<MAIN
from purebpf.__main__ import start

start()
MAIN
sh scripts/release/without_traces.sh "$work/app"
mkdir -p "$(dirname "$file")"
"$python" -m zipapp --compress --python "/usr/bin/env python3" --output "$file" "$work/app"
echo "$file: $(($(stat -c %s "$file") / 1024)) KiB; run it with: sudo $file profile 5"
