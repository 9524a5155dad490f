#!/bin/sh
# Rebuild the objects of this directory (clang 19, libbpf's headers); tests use those checked in.
set -eu
cd "$(dirname "$0")"
system="/usr/include/$(uname -m)-linux-gnu"
for source in *.c; do
	object="${source%.c}.o"
	clang-19 -g -O2 -target bpfel -mcpu=v3 -Wall -Werror -fno-ident -ffile-prefix-map="$PWD"=. \
		-fdebug-compilation-dir=. -I"$system" -c "$source" -o "$object"
	llvm-strip-19 -g "$object"
done
