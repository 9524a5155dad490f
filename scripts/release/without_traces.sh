#!/bin/sh
# Remove from an installed tree what pip writes about this machine: sh scripts/release/without_traces.sh FOLDER
# The times become $SOURCE_DATE_EPOCH, where it is set.
set -eu
rm -rf "$1/bin"
find "$1" -name __pycache__ -prune -exec rm -rf {} +
for name in RECORD INSTALLER REQUESTED direct_url.json; do
    find "$1" -path "*.dist-info/$name" -delete
done
if [ -n "${SOURCE_DATE_EPOCH-}" ]; then
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
fi
