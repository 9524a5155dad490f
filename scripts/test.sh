#!/bin/sh
# Run the tests: sh scripts/test.sh [pytest arguments]
# The programs that tests compare with come from Debian where apt-get can bring them, viewers of
# profiles from npm; a test whose program is missing is skipped, and says so.
cd "$(dirname "$0")/.." || exit 1
extras='[dev]'
. scripts/venv.sh
compile_modules || exit 1
. scripts/packages.sh
packages_for_tests
npm_packages_for_tests
exec "$python" -m pytest "$@"
