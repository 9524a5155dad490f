#!/bin/sh
# Build and check a release of the commit that is checked out: sh scripts/release/release.sh [FOLDER]
#
# FOLDER (build/release) gets the source archive, the wheel, the zipapp, the Debian package, the bill of
# materials, the provenance and SHA256SUMS. All of them are built twice, without a network, in folders,
# time zones, languages and umasks that differ, and must be equal byte for byte. With $ROOTS=yes it also makes
# one program that needs no Python, and an image, and installs all of them in fresh roots of Debian, as a
# stranger would, and the wheel with a CPython of musl. $SIGNING_KEY is a key of OpenSSH that signs SHA256SUMS.
set -eu
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-build/release}")
step() { # [WHAT]: ends a step, with its duration, and begins the next one
    now=$(date +%s)
    [ -z "${began-}" ] || echo "   ($((now - began)) s)"
    began=$now
    [ -z "$*" ] || printf '\n== %s\n' "$*"
}

if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
    echo "the tree has changes that are in no commit: commit or stash them" >&2
    exit 1
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step "packages that the build needs, by hash, into build/wheels"
stamp=build/wheels/complete
if [ ! -e $stamp ] || [ requirements/release.txt -nt $stamp ]; then
    rm -rf build/wheels
    python3 -m venv "$work/fetcher"
    awk '/^[a-z]/ { keep = /^(packaging|setuptools|wheel)==/ } keep' requirements/release.txt >"$work/builders.txt"
    pip() { "$work/fetcher/bin/pip" "$@" --quiet --disable-pip-version-check --require-hashes; }
    pip install -r "$work/builders.txt" # what makes a wheel of a source archive has been checked, too
    pip wheel --no-build-isolation --wheel-dir build/wheels -r requirements/release.txt
    touch $stamp
fi
wheels=$PWD/build/wheels

isolated() { # without a network, where the kernel allows it
    if unshare --net true 2>/dev/null; then unshare --net "$@"; else
        echo "not cut off from the network: unshare --net is refused here" >&2
        "$@"
    fi
}
build() { # NAME UMASK ZONE LANGUAGE
    mkdir -p "$work/$1/$1-tree"
    git archive HEAD | tar -x -C "$work/$1/$1-tree"
    (
        umask "$2"
        isolated env TZ="$3" LC_ALL="$4" PIP_NO_INDEX=1 PIP_FIND_LINKS="$wheels" PIP_CONFIG_FILE=/dev/null \
            sh "$work/$1/$1-tree/scripts/release/build.sh" "$work/$1/out"
    )
}
step "two builds, side by side"
build first 022 UTC C.UTF-8 &
first=$!
build second 077 Pacific/Auckland C
wait $first

step "the same, byte for byte"
(cd "$work/first/out" && sha256sum -- *) >"$work/first.sums"
(cd "$work/second/out" && sha256sum -- *) >"$work/second.sums"
diff "$work/first.sums" "$work/second.sums"
rm -rf "$out"
mkdir -p "$out"
cp "$work/first/out/"* "$out"

python3 scripts/release/provenance.py "$out" build/wheels >"$work/provenance.json"
cp "$work/provenance.json" "$out/provenance.intoto.json"

if [ "${ROOTS-}" = yes ]; then
    step "packages that the installations need"
    # shellcheck source=scripts/packages.sh
    . scripts/packages.sh
    # all at once: the installations run side by side, and apt-get does not
    packages <<LIST
debootstrap debootstrap
umoci umoci
skopeo skopeo
musl-gcc musl-tools
make make
xz xz-utils
pkg-config pkg-config
/usr/include/linux/bpf.h linux-libc-dev
LIST
    step "installations, two at a time"
    # one side compiles CPython twice, the other one unpacks packages
    (
        began=
        step "one program that needs no Python"
        sh scripts/release/frozen.sh "$out"
        step "with a CPython of musl"
        sh scripts/release/musl.sh "$out"
        step
    ) >"$work/compiled.log" 2>&1 &
    compiled=$!
    (
        began=
        step "an image"
        sh scripts/release/image.sh "$out"
        step "in fresh roots"
        sh scripts/release/roots.sh "$out"
        step
    )
    wait $compiled && compiled=0 || compiled=$?
    cat "$work/compiled.log"
    [ "$compiled" = 0 ]
fi
step

(cd "$out" && sha256sum -- *) >"$work/SHA256SUMS"
cp "$work/SHA256SUMS" "$out/SHA256SUMS"
(cd "$out" && sha256sum --quiet --check SHA256SUMS)
if [ -n "${SIGNING_KEY-}" ]; then # docs/releases.md says how to check the signature
    ssh-keygen -Y sign -f "$SIGNING_KEY" -n purebpf-release "$out/SHA256SUMS" >/dev/null
fi
ls -l "$out"
echo "released into $out: built twice, equal"
