"""The kernels of the matrix: Debian's own packages, fetched by name and unpacked, not installed.

A newer or older series is one line in SERIES.
"""

from __future__ import annotations

import gzip
import lzma
import re
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.vm.registry import CACHE, Registry, by_version

__all__ = ["CACHE", "SERIES", "Kernel", "fetch", "is_own", "unpack"]


class Series(NamedTuple):
    """A kernel series: a Debian package pattern, the suites that carry it, its architecture.

    `suites` empty means the suites that this machine's apt already knows.
    """

    package: str
    suites: tuple[str, ...] = ()
    architecture: str = "amd64"


SERIES = {
    "5.10": Series(r"linux-image-5\.10\.0-\d+-amd64", ("bullseye-security",)),
    "6.1": Series(r"linux-image-6\.1\.0-\d+-amd64", ("bookworm", "bookworm-security")),
    "6.12": Series(r"linux-image-6\.12\.\d+\+deb12-amd64", ("bookworm", "bookworm-security")),
    "7.2": Series(r"linux-image-7\.2\.\d+\+deb13-amd64", ("trixie-backports",)),
    "6.12-arm64": Series(
        r"linux-image-6\.12\.\d+\+deb12-arm64", ("bookworm", "bookworm-security"), "arm64"
    ),
}

_PYTHON = (
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
    *("libc6", "libgcc-s1", "libexpat1", "zlib1g", "libssl3", "libffi8"),
    *("libbz2-1.0", "liblzma5", "libuuid1", "libcrypt1", "libsqlite3-0", "busybox-static"),
)
"""What a guest of another architecture needs to run Python and a shell."""

_LIBRARIES = ("libc6", "libgcc-s1", "libexpat1", "zlib1g", "libbz2-1.0", "liblzma5", "libuuid1")
_OTHER_PYTHONS = {
    "bullseye": (r"python3\.9", ("libffi7", "libcrypt1", "libssl1.1")),
    "trixie": (r"python3\.13", ("libffi8", "libssl3t64")),
    "sid": (r"python3\.1[4-9]", ("libffi8", "libssl3t64", "libzstd1")),
}
"""Of other suites, for such a guest: which, and what else these need."""

_CHROOT = """#!/bin/sh
for place in /proc /dev /tmp; do
    grep -q " {root}$place " /proc/mounts || mount -o rbind $place {root}$place
done
exec chroot {root} /usr/bin/{name} "$@"
"""

_MAGIC = {b"\x28\xb5\x2f\xfd": "zstd", b"\x02\x21\x4c\x18": "lz4"}


class Kernel(NamedTuple):
    """An unpacked kernel package: release, what QEMU boots, modules; of another architecture,
    also a root folder with Python in it.
    """

    release: str
    image: Path
    modules: Path
    architecture: str = "amd64"
    root: Path | None = None


def is_own(name: str) -> bool:
    """Whether a kernel of that name into the cache (docs/testing.md)."""
    return name not in SERIES and (CACHE / name / "boot").is_dir()


def fetch(name: str) -> Kernel:
    """The newest package of series `name`, from the registry or the cache; or the user's own.

    Raises:
        RuntimeError: there is neither, and why.
    """
    series = SERIES.get(name)
    folder, foreign = _brought(series) if series else (CACHE / name, None)
    modules = next(path.parent for path in folder.glob("**/modules.builtin"))
    image = next(folder.glob("**/vmlinuz*"))
    if not foreign:
        packed, image = image, folder / f"vmlinux-{modules.name}"
        if not image.exists() or image.stat().st_mtime < packed.stat().st_mtime:
            _extract(packed, image)
    return Kernel(modules.name, image, modules, series.architecture if series else "amd64", foreign)


def _brought(series: Series) -> tuple[Path, Path | None]:
    """The folder of the unpacked kernel, and that of a root for another architecture."""
    registry = Registry(series.suites, series.architecture if _foreign(series) else "")
    try:
        registry.update()
        package = registry.newest(series.package)
    except RuntimeError as error:
        package = _cached(series)
        if package is None:
            raise RuntimeError(
                f"no kernel {series.package}: {error}, and none is in {CACHE}"
            ) from error
        print(f"{package} is from {CACHE}, as {error}")
    if package is None:
        raise RuntimeError(f"the registry offers no {series.package}")
    folder = CACHE / package
    if not folder.exists():
        registry.unpack([package, *registry.halves(package)], folder)
    if not _foreign(series):
        return folder, None
    root = CACHE / f"root-{series.architecture}"
    if not root.exists():
        registry.unpack(list(_PYTHON), root)
    for suite, (pattern, libraries) in _OTHER_PYTHONS.items():
        if not (root / suite).exists():
            _add_pythons(root, suite, series.architecture, pattern, libraries)
    return folder, root


def _add_pythons(
    root: Path, suite: str, architecture: str, pattern: str, libraries: tuple[str, ...]
) -> None:
    """Put the Pythons of a suite into a guest's root: each in a root of its own, below that."""
    registry = Registry((suite,), architecture)
    registry.update()
    pythons = registry.names("python3.", pattern)
    packages = [*_LIBRARIES, *libraries]
    for name in pythons:
        packages += [f"{name}-minimal", f"lib{name}-minimal", f"lib{name}-stdlib"]
    # Debian's roots have links for /lib since trixie, and packages that rely on them
    registry.unpack(packages, root / suite)
    for name in ("lib", "lib64", "bin"):
        if not (root / suite / name).exists():
            (root / suite / name).symlink_to(f"usr/{name}")
    for place in ("proc", "dev", "tmp"):
        (root / suite / place).mkdir(exist_ok=True)
    commands = root / "usr/local/bin"
    commands.mkdir(parents=True, exist_ok=True)
    for name in pythons:
        command = commands / name
        command.write_text(_CHROOT.format(root=f"/{suite}", name=name))
        command.chmod(0o755)


def _foreign(series: Series) -> bool:
    return series.architecture != "amd64"


def _cached(series: Series) -> str | None:
    names = [path.name for path in CACHE.glob("linux-image-*")]
    return max((n for n in names if re.fullmatch(series.package, n)), key=by_version, default=None)


def _extract(bzimage: Path, image: Path) -> None:
    """The ELF kernel inside a bzImage (Documentation/arch/x86/boot.rst: payload_offset).

    QEMU enters it by its PVH note, which saves the guest from unpacking itself.
    """
    data = bzimage.read_bytes()
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (data[0x1F1] + 1) * 512 + offset
    elf = unpack(data[start : start + length])
    if elf[:4] != b"\x7fELF":
        raise RuntimeError(f"cannot unpack {bzimage}")
    part = image.with_suffix(".part")
    part.write_bytes(elf)
    part.rename(image)


def unpack(data: bytes) -> bytes:
    """Undo whatever compression the magic bytes name."""
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:6] == b"\xfd7zXZ\0":
        return lzma.LZMADecompressor().decompress(data)
    if tool := _MAGIC.get(data[:4]):
        # the payload is followed by its size, which the tools call trailing garbage
        return subprocess.run([tool, "-dcq"], input=data, capture_output=True, check=False).stdout
    return data
