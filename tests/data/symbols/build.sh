#!/bin/sh
# Rebuilds the ELF files next to this script (gcc with -m32, binutils, xz).
set -eu
cd "$(dirname "$0")"
common="-O1 -nostdlib -Wl,--build-id=0x0102030405060708090a -Wl,-z,noseparate-code"
gcc $common -fno-pie -no-pie -static -o tiny-static tiny.c
gcc $common -fno-pie -no-pie -static -m32 -o tiny-i386 tiny.c
gcc $common -DLIBRARY -fPIC -shared -o tiny.so tiny.c
strip -s -o tiny-stripped.so tiny.so
objcopy -S --keep-symbol=hidden tiny.so mini
xz -9 -c mini > mini.xz
objcopy --add-section .gnu_debugdata=mini.xz tiny-stripped.so tiny-mini.so
objcopy --only-keep-debug tiny.so tiny.debug
objcopy --remove-section .note.gnu.build-id --add-gnu-debuglink=tiny.debug tiny-stripped.so tiny-linked.so
rm -f mini mini.xz
chmod 644 tiny-static tiny-i386 tiny*.so tiny.debug
