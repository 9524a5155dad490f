# Sourced: make_root SUITE FOLDER [PACKAGE,...] makes a root of Debian, or uses the one that is there;
# in_root FOLDER COMMAND ... runs in it, with /proc, /sys and /dev. $loop is what a try of a release profiles, as
# an idle machine has no stacks to show.

# shellcheck disable=SC2034 # by the scripts that read this file
loop='i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'

mirror=${MIRROR:-$(awk '/^URIs:/ { print $2; exit } /^deb / { print $2; exit }' /etc/apt/sources.list.d/*.sources \
    /etc/apt/sources.list 2>/dev/null)}

make_root() {
    [ -e "$2/etc/debian_version" ] && [ -e "$2/complete" ] && return 0
    command -v debootstrap >/dev/null || { . scripts/packages.sh && packages <<LIST; }
debootstrap debootstrap
LIST
    rm -rf "$2"
    mkdir -p "build/roots/archives/$1" # roots of one suite have most packages in common
    debootstrap --cache-dir="$PWD/build/roots/archives/$1" --variant=minbase ${3:+--include=$3} \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$1" "$2" "$mirror" >"$2.log" 2>&1 ||
        { tail -5 "$2.log" >&2 && return 1; }
    touch "$2/complete"
}

in_root() (
    root=$1
    shift
    # in a mount namespace of its own, so that nothing is left mounted
    # shellcheck disable=SC2016 # the inner shell expands these
    unshare --mount --propagation private sh -euc '
        root=$1
        shift
        for folder in proc sys dev; do mount --rbind /$folder "$root/$folder"; done
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "$@"
    ' sh "$root" "$@"
)
