#!/bin/sh
# Make the Debian package: sh scripts/release/debian.sh WHEEL PYTHON FOLDER
# purebpf and the packages that it needs are in /usr/lib/purebpf, where no other program finds them: Debian 12
# has neither demangle nor versions of pyelftools and construct that are new enough. PYTHON has the wheel and
# argparse-manpage installed.
set -eu
wheel=$1 python=$2 out=$3
root=build/debian/root
rm -rf build/debian
mkdir -p $root/DEBIAN $root/usr/bin $root/usr/lib/systemd/system $root/usr/share/doc/purebpf \
    $root/usr/share/bash-completion/completions $root/usr/share/zsh/vendor-completions \
    $root/usr/share/fish/vendor_completions.d

"$python" -m pip install --quiet --disable-pip-version-check --no-compile --target $root/usr/lib/purebpf \
    --require-hashes -r requirements/run.txt
"$python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --upgrade \
    --target $root/usr/lib/purebpf "$wheel"
sh scripts/release/without_traces.sh $root/usr/lib/purebpf
cat >$root/usr/bin/purebpf <<'PROGRAM'
#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "/usr/lib/purebpf")

from purebpf.__main__ import start

start()
PROGRAM
chmod 755 $root/usr/bin/purebpf

"$python" scripts/release/man_pages.py $root/usr/share/man/man1
"$python" -P -m purebpf completion bash >$root/usr/share/bash-completion/completions/purebpf
"$python" -P -m purebpf completion zsh >$root/usr/share/zsh/vendor-completions/_purebpf
"$python" -P -m purebpf completion fish >$root/usr/share/fish/vendor_completions.d/purebpf.fish
sed 's,@PUREBPF@,/usr/bin/purebpf,' purebpf/services/agent/purebpf-agent.service \
    >$root/usr/lib/systemd/system/purebpf-agent.service
gzip -9nc CHANGELOG.md >$root/usr/share/doc/purebpf/changelog.gz
"$python" scripts/sbom.py >$root/usr/share/doc/purebpf/sbom.cdx.json
{
    echo "purebpf, and the packages in /usr/lib/purebpf, whose licenses are in their .dist-info folders."
    echo
    cat LICENSE
} >$root/usr/share/doc/purebpf/copyright

version=$("$python" -c 'from purebpf import __version__; print(__version__.replace(".dev", "~dev"))')
cat >$root/DEBIAN/control <<CONTROL
Package: purebpf
Version: $version
Architecture: all
Maintainer: the developers of purebpf <purebpf@localhost>
Depends: python3 (>= 3.11)
Installed-Size: $(du -sk --apparent-size $root/usr | cut -f1)
Section: admin
Priority: optional
Description: profilers and tracers for Linux that run at once
 Commands that show where CPUs, threads, memory and system calls spend their time, by BPF programs that
 need neither a compiler nor kernel headers.
CONTROL
# modules are compiled once, by root, and not by each start
cat >$root/DEBIAN/postinst <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null; then py3compile -p purebpf /usr/lib/purebpf; fi
SCRIPT
cat >$root/DEBIAN/prerm <<'SCRIPT'
#!/bin/sh
set -e
if command -v py3clean >/dev/null; then py3clean -p purebpf; fi
SCRIPT
chmod 755 $root/DEBIAN/postinst $root/DEBIAN/prerm
chmod -R u=rwX,go=rX $root
dpkg-deb --root-owner-group -Zxz --build $root "$out/purebpf_${version}_all.deb" >/dev/null
