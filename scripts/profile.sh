#!/bin/sh
# Profile this machine: sh scripts/profile.sh [options of purebpf.tools.profile] [seconds]
cd "$(dirname "$0")/.." || exit 1
. scripts/venv.sh
exec "$python" -P -m purebpf profile "${@:-5}"
