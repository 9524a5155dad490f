#!/bin/sh
# Build the files of a release once, from an unpacked source tree: sh scripts/release/build.sh FOLDER
# scripts/release/release.sh calls it, with all packages in $PIP_FIND_LINKS and their hashes checked.
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
chmod -R u=rwX,go=rX .
umask 022
export TZ=UTC # zip files have local times
mkdir -p "$out"

python3 -m venv build/venv
python=$PWD/build/venv/bin/python
grep -o '^[^ ]*==[^ ]*' requirements/release.txt >build/needed.txt # wheels made of sources have other hashes
"$python" -m pip install --quiet --disable-pip-version-check --no-deps -r build/needed.txt
"$python" -m build --no-isolation --outdir "$out" . >build/wheel.log
"$python" scripts/release/normalize_sdist.py "$out"/purebpf-*.tar.gz
wheel=$(ls "$out"/purebpf-*-py3-none-any.whl)
"$python" -m pip install --quiet --disable-pip-version-check --no-deps "$wheel"
"$python" scripts/sbom.py >"$out/purebpf.cdx.json"
PYTHON=$python WHEEL=$wheel sh scripts/zipapp.sh "$out/purebpf.pyz" >/dev/null
chmod 755 "$out/purebpf.pyz"
sh scripts/release/debian.sh "$wheel" "$python" "$out"
