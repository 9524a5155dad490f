#!/bin/sh
# Pin what purebpf needs, by version and hash: sh scripts/lock.sh [--upgrade]
# requirements/run.txt is what the zipapp holds, requirements/ci.txt what CI runs with,
# requirements/engines.txt what it asks beside DuckDB, requirements/referee.txt the profilers of
# scripts/referee.sh, and requirements/release.txt what scripts/release/ builds with. Look at the difference before you commit it.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pip-tools
lock() {
    "$work/venv/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --strip-extras \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --no-annotate \
        "$@" setup.cfg
}
lock --output-file requirements/run.txt ${1+"$1"}
lock --output-file requirements/ci.txt --extra dev --extra fuzz --constraint requirements/run.txt \
    --build-deps-for editable --build-deps-for wheel ${1+"$1"}
lock --output-file requirements/engines.txt --extra clickhouse --extra spark \
    --constraint requirements/ci.txt ${1+"$1"}
lock --output-file requirements/referee.txt --extra referee --constraint requirements/ci.txt ${1+"$1"}
lock --output-file requirements/release.txt --extra release --constraint requirements/ci.txt ${1+"$1"}
