"""The initramfs of a guest: busybox, the modules that mounting needs, and one script."""

from __future__ import annotations

import io
import re
import stat
import sys
from pathlib import Path, PurePosixPath

from tests.vm.kernels import Kernel, unpack

MODULES = ("virtio_pci", "overlay", "9p", "9pnet_virtio")

_INIT = r"""#!/bin/busybox sh
B=/bin/busybox
die() { echo "purebpf: cannot set up: $1"; $B poweroff -f; }
$B mount -t proc proc /proc; $B mount -t sysfs sysfs /sys; $B mount -t devtmpfs dev /dev
while read module; do $B insmod /modules/$module || die "insmod $module"; done </modules/order
$B mkdir -p /lower /newroot /overlay
$B mount -t tmpfs -o size=75% tmpfs /overlay; $B mkdir /overlay/upper /overlay/work
share="trans=virtio,version=9p2000.L,msize=512000"
$B mount -t 9p -o ro,cache=loose,$share root /lower || die root
. /place
$B mount -t overlay -o lowerdir=$lower,upperdir=/overlay/upper,workdir=/overlay/work \
    overlay /newroot || die overlay
cd /newroot
for d in $shared; do $B mkdir -p .$d; $B mount --bind /lower$d .$d || die $d; done
for d in proc sys dev; do $B mkdir -p $d; $B mount --move /$d $d; done
$B mkdir -p dev/pts dev/shm run tmp root
$B mount -t devpts devpts dev/pts; $B mount -t tmpfs tmpfs dev/shm
$B mount -t tmpfs -o mode=755 tmpfs run
for link in fd: stdin:/0 stdout:/1 stderr:/2; do
    $B ln -sf /proc/self/fd${link#*:} dev/${link%:*}
done
$B mount -t cgroup2 cgroup2 sys/fs/cgroup
# as systemd does; until it happens, perf events of any cgroup but the root are ENOENT
echo "+cpu +memory +pids" >sys/fs/cgroup/cgroup.subtree_control
$B mount -t bpf bpf sys/fs/bpf
$B mount -t tracefs tracefs sys/kernel/tracing
$B ip link set lo up; $B hostname guest
$B mkdir -p run/out run/vm
$B mount -t 9p -o rw,cache=none,$share out run/out || die out
$B cp /bin/busybox /command.sh run/vm/
[ -e bin/sh ] || $B chroot . /run/vm/busybox --install -s /bin
exec $B switch_root -c /dev/console /newroot /run/vm/busybox sh -c '
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LANG=C.UTF-8
echo began >/run/out/status
/run/vm/busybox setsid /bin/sh /run/vm/command.sh </dev/null >/run/out/output 2>&1
echo "exit=$?" >>/run/out/status
/run/vm/busybox poweroff -f'
"""


def build(kernel: Kernel, script: str) -> bytes:
    """The archive: boots to `script`, run by the host's /bin/sh below the host's root."""
    archive = _Cpio()
    for folder in ("proc", "sys", "dev", "bin", "modules"):
        archive.folder(folder)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.add("dev/null", stat.S_IFCHR | 0o666, device=(1, 3))
    busybox = (kernel.root or Path("/")) / "bin/busybox"
    archive.file("bin/busybox", busybox.read_bytes())
    modules = _modules(kernel.modules)
    for name, data in modules.items():
        archive.file(f"modules/{name}.ko", data)
    archive.file("modules/order", "".join(f"{name}.ko\n" for name in modules).encode())
    archive.file("init", _INIT.encode())
    archive.file("command.sh", script.encode())
    archive.file("place", _place(kernel).encode())
    return archive.close()


def _place(kernel: Kernel) -> str:
    """What becomes the guest's root, and the folders of the host that are added to it."""
    if kernel.root is None:
        return "lower=/lower\nshared=\n"
    shared = {Path.cwd(), Path(sys.prefix).resolve()}
    return f"lower=/lower{kernel.root.resolve()}\nshared='{' '.join(map(str, sorted(shared)))}'\n"


def _modules(folder: Path) -> dict[str, bytes]:
    """MODULES and what they depend on, in load order, uncompressed."""
    files = {_module_name(path.name): path for path in folder.glob("kernel/**/*.ko*")}
    builtin = {_module_name(line) for line in (folder / "modules.builtin").read_text().split()}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in builtin or name in found:
            return
        data = unpack(files[name].read_bytes())
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for needed in depends[1].decode().split(",") if depends else ():
            if needed:
                add(_module_name(needed))
        found[name] = data

    for wanted in MODULES:
        add(wanted)
    return found


def _module_name(path: str) -> str:
    return PurePosixPath(path).name.split(".ko")[0].replace("-", "_")


class _Cpio:
    """A writer of the "newc" format (Documentation/driver-api/early-userspace)."""

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self._inode = 1

    def add(
        self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)
    ) -> None:
        path = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
        self._inode += 1
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        for part in (header + path, data):
            self._out.write(part)
            self._out.write(b"\0" * (-self._out.tell() % 4))

    def folder(self, name: str) -> None:
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes) -> None:
        self.add(name, stat.S_IFREG | 0o755, data)

    def close(self) -> bytes:
        self.add("TRAILER!!!", 0)
        return self._out.getvalue()
