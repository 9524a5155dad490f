#!/bin/sh
# Run the tests of what purebpf does with pyelftools, construct, pyroute2 and demangle, with the oldest versions
# that setup.cfg allows: sh scripts/oldest.sh [TEST ...]. Everything else in CI runs with the newest.
set -eu
cd "$(dirname "$0")/.."
. scripts/venv.sh
folder=build/oldest
rm -rf $folder
"$python" -c '
import configparser, re
config = configparser.ConfigParser()
config.read("setup.cfg")
for line in config["options"]["install_requires"].split():
    print(re.sub(r"([\w-]+)>=([\d.]+).*", r"\1==\2", line))' >build/oldest.txt
cat build/oldest.txt
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target $folder -r build/oldest.txt
[ $# -gt 0 ] || set -- tests/unit/tools/inspect tests/unit/dataflow/test_golden.py tests/unit/wire tests/unit/elf
export PYTHONPATH=$folder
"$python" -c '
import sys
from importlib.metadata import version
for line in open(sys.argv[1]):
    name, oldest = line.strip().split("==")
    assert version(name) == oldest, (name, version(name))' build/oldest.txt
"$python" -m pytest -q "$@"
