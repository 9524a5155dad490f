#!/bin/sh
# Make one program that needs no Python, and try it: sh scripts/release/frozen.sh RELEASE
# PyInstaller packs a CPython 3.11 that is built from Debian 12's source package in a root of Debian 11, so that
# the program needs no C library newer than 2.31. It is not built twice: it holds the paths of its build.
set -eu
release=$(realpath "$1")
cd "$(dirname "$0")/../.."
. scripts/release/root.sh
root=build/roots/bullseye
mkdir -p build/roots
make_root bullseye $root \
    build-essential,zlib1g-dev,libssl-dev,libffi-dev,libbz2-dev,liblzma-dev,libsqlite3-dev,libexpat1-dev,ca-certificates
if [ ! -x $root/opt/python/bin/python3.11 ]; then
    echo "deb-src $mirror bookworm main" >$root/etc/apt/sources.list.d/sources.list
    cp /usr/share/keyrings/debian-archive-keyring.gpg $root/etc/apt/trusted.gpg.d/
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do cp -L $file $root$file; done
    in_root $root sh -euc '
        apt-get update -qq
        mkdir -p /build && cd /build
        apt-get source -qq python3.11 >/dev/null 2>&1
        cd python3.11-*
        # a patch of Debian uses the interpreter'"'"'s own header there, which setup.py does not allow for
        echo "pyexpat pyexpat.c -DPy_BUILD_CORE_MODULE -lexpat" >Modules/Setup.local
        ./configure --quiet --prefix=/opt/python --enable-shared --without-ensurepip --disable-test-modules --with-system-expat \
            LDFLAGS="-Wl,-rpath,/opt/python/lib" >/build/configure.log 2>&1
        make -s -j2 >/build/make.log 2>&1 || { tail /build/make.log && exit 1; }
        make -s install >/build/install.log 2>&1 || { tail /build/install.log && exit 1; }
    '
fi
rm -rf $root/site $root/work
python3 -m pip install --quiet --disable-pip-version-check --no-index --find-links build/wheels \
    --find-links "$release" --python-version 3.11 --only-binary :all: --platform manylinux2014_x86_64 \
    --platform any --target $root/site pyinstaller purebpf
mkdir $root/work
cat >$root/work/purebpf-program.py <<'PROGRAM'
import sys

from purebpf.__main__ import main

sys.exit(main())
PROGRAM
in_root $root sh -euc '
    cd /work
    PYTHONPATH=/site /opt/python/bin/python3.11 -m PyInstaller --noconfirm --log-level ERROR --onefile \
        --name purebpf purebpf-program.py >freeze.log 2>&1 || { cat freeze.log; exit 1; }
    env -i ./dist/purebpf --version
'
program=$release/purebpf-$(uname -m)
cp $root/work/dist/purebpf "$program"
library=$(in_root $root ldd --version | head -1)
env -i "$program" profile -f -F 999 -- /bin/sh -c "$loop" >build/frozen.txt
grep -q '^sh;' build/frozen.txt
echo "$program: $(($(stat -c %s "$program") / 1048576)) MiB, built with $library"
