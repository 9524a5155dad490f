#!/bin/sh
# Install a release with a CPython of musl, and profile: sh scripts/release/musl.sh RELEASE
# No registry has a CPython for musl, so this builds one with Debian's musl-gcc, from the sources of Debian, with
# zlib and libffi, into build/musl. Alpine itself is not tried here.
set -eu
release=$(realpath "$1")
cd "$(dirname "$0")/../.."
. scripts/release/root.sh
. scripts/packages.sh
packages <<LIST
musl-gcc musl-tools
make make
xz xz-utils
pkg-config pkg-config
/usr/include/linux/bpf.h linux-libc-dev
LIST
here=$PWD/build/musl
prefix=$here/installed
wheels=${WHEELS:-build/wheels}

if [ ! -x "$prefix/bin/python3" ]; then
    rm -rf "$here"
    mkdir -p "$here/lists/partial" "$here/archives" "$here/headers"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$here/sources.list"
    cat >"$here/apt.conf" <<-CONF
		Dir::State::Lists "$here/lists";
		Dir::Etc::SourceList "$here/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
	CONF
    (
        cd "$here/archives"
        APT_CONFIG=$here/apt.conf apt-get -qq update
        APT_CONFIG=$here/apt.conf apt-get -qq source --download-only zlib libffi python3.11
    )
    # the kernel's headers, which musl-gcc does not look for
    ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(uname -m)-linux-gnu/asm" "$here/headers"
    unpack() { mkdir "$here/$1" && tar -C "$here/$1" --strip-components=1 -xf "$here"/archives/"$1"_*.orig.tar.*; }
    quietly() { "$@" >>"$here/log" 2>&1 || { tail "$here/log" >&2 && return 1; }; }
    cat >"$here/cc" <<-COMPILER
		#!/bin/sh
		case \$* in
		*-print-multiarch) echo $(uname -m)-linux-musl ;; # musl-gcc says gnu, and CPython stops at that
		*) exec musl-gcc -isystem $here/headers "\$@" ;;
		esac
	COMPILER
    chmod +x "$here/cc"
    export CC="$here/cc" PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
    unpack zlib
    (cd "$here/zlib" && CFLAGS="-O2 -fPIC" quietly ./configure --static --prefix="$prefix" && quietly make -s install)
    unpack libffi
    (cd "$here/libffi" && quietly ./configure --disable-shared --with-pic --disable-docs --without-gcc-arch --prefix="$prefix" &&
        quietly make -s install)
    unpack python3.11
    (
        cd "$here/python3.11"
        quietly ./configure --prefix="$prefix" --disable-test-modules CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib"
        quietly make -s -j2
        quietly make -s install
    )
fi

python=$prefix/bin/python3
file=$(readlink -f "$python")
readelf -l "$file" | grep -o 'interpreter: .*musl[^]]*'
"$python" --version
rm -rf "$here/venv"
start=$(date +%s.%N)
"$python" -m venv "$here/venv"
"$here/venv/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$release" --find-links "$wheels" purebpf
"$here/venv/bin/purebpf" profile -f -F 999 -- /bin/sh -c "$loop" >"$here/profile.txt"
grep -q '^sh;' "$here/profile.txt"
echo "venv and pip: $(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f s", $1 - $2 }')"
"$here/venv/bin/purebpf" profile -f -U -F 999 -- "$python" -c '
def inner(number):
    while number:
        number -= 1
def outer():
    inner(3000000)
outer()' >"$here/python.txt"
grep -q 'outer.*;inner' "$here/python.txt"
echo "a Python program of musl: $(awk '/outer.*;inner/ { sum += $NF } { all += $NF } END { print sum " of " all " samples below its functions" }' "$here/python.txt")"
