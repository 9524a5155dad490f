#!/bin/sh
# Make an OCI image of the Debian package, and try it: sh scripts/release/image.sh RELEASE
# The result is RELEASE/purebpf-VERSION.oci.tar, which podman, docker, containerd and skopeo load. Its layer is
# Debian 13 with Python and the package; it is not built twice, as debootstrap writes times of its own.
set -eu
release=$(realpath "$1")
cd "$(dirname "$0")/../.."
. scripts/release/root.sh
. scripts/packages.sh
packages <<LIST
umoci umoci
skopeo skopeo
LIST
work=$PWD/build/image
rm -rf "$work"
mkdir -p "$work" build/roots
make_root trixie build/roots/image-base python3
deb=$(ls "$release"/purebpf_*_all.deb)
version=${deb##*/purebpf_}
version=$(echo "${version%_all.deb}" | tr '~' '-') # a tag has no ~
image=$release/purebpf-$version.oci.tar

umoci init --layout "$work/layout"
umoci new --image "$work/layout:$version"
umoci unpack --image "$work/layout:$version" "$work/bundle" 2>/dev/null
cp -a build/roots/image-base/. "$work/bundle/rootfs"
cp "$deb" "$work/bundle/rootfs/purebpf.deb"
in_root "$work/bundle/rootfs" sh -euc 'dpkg --install /purebpf.deb >/dev/null; apt-get clean'
rm -rf "$work/bundle/rootfs/purebpf.deb" "$work/bundle/rootfs/complete" "$work/bundle/rootfs/var/lib/apt/lists"/* \
    "$work/bundle/rootfs/var/log"/*
umoci repack --image "$work/layout:$version" "$work/bundle" 2>/dev/null
umoci config --image "$work/layout:$version" --config.entrypoint /usr/bin/purebpf --config.cmd doctor \
    --author "the developers of purebpf"
rm -f "$image"
skopeo copy --quiet "oci:$work/layout:$version" "oci-archive:$image:$version"
echo "$image: $(($(stat -c %s "$image") / 1048576)) MiB"

# what a runtime does with it: unpack, enter, run the entry point
mkdir -p "$work/check"
skopeo copy --quiet "oci-archive:$image" "oci:$work/check/layout:$version"
umoci unpack --image "$work/check/layout:$version" "$work/check/bundle" 2>/dev/null
grep -q '/usr/bin/purebpf' "$work/check/bundle/config.json"
in_root "$work/check/bundle/rootfs" /usr/bin/purebpf profile -f -F 999 -- /bin/sh -c "$loop" >"$work/check/profile.txt"
grep -q '^sh;' "$work/check/profile.txt"
echo "as root: profiled"

# an ordinary user, in a user namespace: what works without privileges
user=$work/check/user
mkdir -p "$user"
cp -r "$work/check/layout" "$user/layout"
chown -R nobody "$user"
# shellcheck disable=SC2016 # the inner shell expands these
setpriv --reuid nobody --clear-groups env HOME="$user" sh -euc '
    umoci unpack --rootless --image "$1/layout:$2" "$1/bundle" 2>/dev/null
    unshare --user --map-root-user chroot "$1/bundle/rootfs" /usr/bin/purebpf --version
' sh "$user" "$version"
echo "as an ordinary user: unpacked and started"
rm -rf "$work"
