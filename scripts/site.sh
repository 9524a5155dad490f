#!/bin/sh
# Build the pages of docs/ as a site into build/site: sh scripts/site.sh
# A warning is an error, and so is a script, style or picture that a page loads from another host.
set -eu
cd "$(dirname "$0")/.."
export NO_MKDOCS_2_WARNING=1
mkdir -p build
# no --quiet, which hides the warnings from --strict, too
.venv/bin/mkdocs build --strict >build/site.log 2>&1 || {
    grep -v "^INFO" build/site.log >&2
    exit 1
}
loads='<(script|img|iframe|link rel="(stylesheet|icon|preload|preconnect)")[^>]* (src|href)="(https?:)?//[^"]*"'
if grep -rEo --include='*.html' "$loads" build/site >&2; then
    echo "build/site: pages load these from other hosts" >&2
    exit 1
fi
