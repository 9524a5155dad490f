"""The kernels of the matrix: Debian's own packages, fetched by name and unpacked, not installed.

A newer or older series is one line in SERIES.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "purebpf" / "kernels"


class Series(NamedTuple):
    """A kernel series: a Debian package pattern and the suites that carry it.

    `suites` empty means the suites that this machine's apt already knows.
    """

    package: str
    suites: tuple[str, ...] = ()


SERIES = {
    "5.10": Series(r"linux-image-5\.10\.0-\d+-amd64", ("bullseye-security",)),
    "6.1": Series(r"linux-image-6\.1\.0-\d+-amd64"),
    "6.12": Series(r"linux-image-6\.12\.\d+\+deb12-amd64"),
    "7.2": Series(r"linux-image-7\.2\.\d+\+deb13-amd64", ("trixie-backports",)),
}

_MAGIC = {b"\x28\xb5\x2f\xfd": "zstd", b"\x02\x21\x4c\x18": "lz4"}


class Kernel(NamedTuple):
    """An unpacked kernel package: its release, the ELF kernel and the module directory."""

    release: str
    image: Path
    modules: Path


def fetch(series: str) -> Kernel:
    """The newest package of `series`, from the cache or the registry.

    Raises:
        RuntimeError: when the registry offers no such package.
    """
    apt = _Apt(SERIES[series])
    package = apt.newest()
    folder = CACHE / package
    if not folder.exists():
        apt.download(package, folder)
    modules = next(path.parent for path in folder.glob("**/modules.builtin"))
    image = folder / f"vmlinux-{modules.name}"
    if not image.exists():
        _extract(next(folder.glob("**/vmlinuz*")), image)
    return Kernel(modules.name, image, modules)


class _Apt:
    """apt-get, with a source list of our own where the series needs other suites."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.options: list[str] = []
        if series.suites:
            self._own_lists()

    def _own_lists(self) -> None:
        home = CACHE / "apt" / "-".join(self.series.suites)
        (home / "lists/partial").mkdir(parents=True, exist_ok=True)
        (home / "archives/partial").mkdir(parents=True, exist_ok=True)
        lines = [
            f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {suite} main"
            for suite in self.series.suites
            for mirror in [_mirror(security=suite.endswith("-security"))]
        ]
        (home / "sources.list").write_text("\n".join(lines) + "\n")
        settings = {
            "Dir::Etc::sourcelist": home / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::Lists": home / "lists",
            "Dir::Cache": home,
            "Acquire::Languages": "none",
            "APT::Sandbox::User": "root",
        }
        self.options = [
            part for name, value in settings.items() for part in ("-o", f"{name}={value}")
        ]
        subprocess.run(["apt-get", *self.options, "-qq", "update"], check=True)

    def newest(self) -> str:
        """The name of the newest package that matches."""
        listed = subprocess.run(
            ["apt-cache", *self.options, "pkgnames", "linux-image-"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        found = [name for name in listed if re.fullmatch(self.series.package, name)]
        found = [name for name in found if self._offered(name)]
        if not found:
            raise RuntimeError(f"the registry offers no {self.series.package}")
        return max(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])

    def _offered(self, name: str) -> bool:
        policy = subprocess.run(
            ["apt-cache", *self.options, "policy", name],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"LC_ALL": "C"},
        ).stdout
        return "Candidate: (none)" not in policy and "Candidate:" in policy

    def download(self, package: str, folder: Path) -> None:
        """Unpack `package` into `folder`; a half-done one is never seen there."""
        unpacked = folder.with_suffix(folder.suffix + ".part")
        archives = CACHE / "archives"
        archives.mkdir(parents=True, exist_ok=True)
        packages = [package, *self._halves(package)]
        fetch_them = ["apt-get", *self.options, "-qq", "-o", "APT::Sandbox::User=root"]
        subprocess.run([*fetch_them, "download", *packages], check=True, cwd=archives)
        for archive in archives.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
            archive.unlink()
        unpacked.rename(folder)

    def _halves(self, package: str) -> list[str]:
        """The packages that hold kernel and modules, where Debian split them off (7.x)."""
        depends = subprocess.run(
            ["apt-cache", *self.options, "depends", package],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return re.findall(r"Depends: (linux-(?:base|binary|modules)-\d\S*)", depends)


def _mirror(*, security: bool) -> str:
    """The archive that this machine's apt is configured with."""
    texts = [
        path.read_text()
        for pattern in ("sources.list", "sources.list.d/*.list", "sources.list.d/*.sources")
        for path in Path("/etc/apt").glob(pattern)
    ]
    found = re.findall(
        r"(?:^URIs:\s*|^deb\s+(?:\[[^]]*\]\s*)?)(\S+)", "\n".join(texts), re.MULTILINE
    )
    for mirror in found:
        if mirror.rstrip("/").endswith("-security") == security:
            return str(mirror)
    raise RuntimeError("no Debian archive found in /etc/apt")


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
