#!/bin/sh
# Install a release as a stranger does, in fresh roots of Debian 12, 13 and sid, and profile with each way of
# installing: sh scripts/release/roots.sh RELEASE [SUITE ...]
# Prints the seconds from nothing to the first profile. The roots stay in build/roots; installing is fresh.
set -eu
release=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
. scripts/release/root.sh
suites=${*:-bookworm trixie sid}
mkdir -p build/roots

cat >build/roots/ways.sh <<WAYS
set -eu
way() { # NAME COMMAND...: a profile whose output has the loop
    name=\$1
    shift
    "\$@" profile -f -F 999 -- /bin/sh -c '$loop' >/tmp/profile.txt
    grep -q '^sh;' /tmp/profile.txt || { cat /tmp/profile.txt && exit 1; }
    now=\$(date +%s.%N)
    echo "\$name: \$(echo "\$now \$start" | awk '{ printf "%.1f s", \$1 - \$2 }')"
}
. /etc/os-release
echo "== \$PRETTY_NAME, \$(python3 --version)"
rm -rf /venv /tmp/*
start=\$(date +%s.%N)
python3 -m venv /venv
/venv/bin/pip install --quiet --no-index --find-links /release --find-links /wheels purebpf
way "venv and pip" /venv/bin/purebpf
start=\$(date +%s.%N)
cp /release/purebpf.pyz /tmp/purebpf.pyz
way "one file" /tmp/purebpf.pyz
start=\$(date +%s.%N)
dpkg --install /release/purebpf_*_all.deb >/dev/null
way "Debian package" purebpf
zcat /usr/share/man/man1/purebpf-profile.1.gz | grep -q '^.SH NAME'
test -x /usr/bin/purebpf && ! find /usr/lib/purebpf -newer /usr/bin/purebpf -name '*.py' | grep -q .
dpkg --purge purebpf >/dev/null
if [ -e /usr/lib/purebpf ]; then echo "left behind:" && find /usr/lib/purebpf && exit 1; fi
WAYS
for suite in $suites; do
    root=build/roots/$suite
    make_root "$suite" "$root" python3,python3-venv
    rm -rf "$root/release" "$root/wheels"
    cp -r "$release" "$root/release"
    cp -r build/wheels "$root/wheels"
    cp build/roots/ways.sh "$root/ways.sh"
    in_root "$root" sh /ways.sh
done
