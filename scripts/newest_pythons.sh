#!/bin/sh
# Runs a command with Debian's newest CPythons in PATH, of unstable, in a chroot. Needs root.
#
#     sh scripts/newest_pythons.sh build/pythons COMMAND...
#
# For tests of what distributions do not have yet. The folder keeps what was downloaded (20 MB), and
# the mounts are gone with the command.
set -eu

folder=$(realpath -m "$1")
shift
root=$folder/root
libraries="libc6 libgcc-s1 libbz2-1.0 libexpat1 libffi8 liblzma5 libssl3t64 libuuid1 libzstd1 zlib1g"

if [ ! -e "$folder/done" ]; then
	rm -rf "$folder"
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/bin" "$folder/debs"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"http://deb.debian.org/debian sid main" >"$folder/sources.list"
	cat >"$folder/apt.conf" <<-EOF
		Dir::State::Lists "$folder/lists";
		Dir::State::status "/dev/null";
		Dir::Etc::SourceList "$folder/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Cache "$folder/cache";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
	EOF
	export APT_CONFIG="$folder/apt.conf"
	apt-get -q update
	versions=$(apt-cache pkgnames python3.1 | grep -Ex 'python3\.1[4-9]' | sort)
	packages=$libraries
	for python in $versions; do
		packages="$packages $python-minimal lib$python-minimal lib$python-stdlib"
	done
	(cd "$folder/debs" && apt-get -q download $packages)
	mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64" "$root/proc" "$root/tmp" "$root/dev"
	ln -s usr/bin usr/lib usr/lib64 "$root"
	for package in "$folder"/debs/*.deb; do
		dpkg-deb -x "$package" "$root"
	done
	for python in $versions; do
		printf '#!/bin/sh\nexec chroot %s /usr/bin/%s "$@"\n' "$root" "$python" \
			>"$folder/bin/$python"
		chmod +x "$folder/bin/$python"
		"$folder/bin/$python" --version
	done
	touch "$folder/done"
fi

export PATH="$folder/bin:$PATH"
exec unshare -m sh -eu -c '
	root=$1
	shift
	for place in /proc /tmp /dev; do
		mount --rbind "$place" "$root$place"
	done
	exec "$@"' sh "$root" "$@"
