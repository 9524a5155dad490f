"""File systems that fill up, and ones that are used as they should be."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import CallCount, Facts, FileSystem, PathCount, Process
from purebpf.findings.find import find
from purebpf.findings.finding import Finding
from tests.support.builders.facts import PYTHON, facts, native, own, running

MB = 1_000_000
GROWS = (50 * MB, 80 * MB, 110 * MB)
SHOP, SCRATCH = Process(7, 1, "shop", PYTHON), Process(8, 1, "sorter", "/srv/sorter")


def filling(
    *used: int, kind: str = "tmpfs", free: int = 9000 * MB, path: str = "/dev/shm"
) -> Facts:
    """A shop that keeps its previews, and a sorter that removes its files again."""
    kernel = ("shmem_file_write_iter", "vfs_write")
    stay = running(7, 7, native("write"), own("save_preview"), seconds=0.4)._replace(kernel=kernel)
    answer = running(7, 7, native("_socket_write"), own("do_get"), seconds=0.9)
    return facts(stay, answer)._replace(
        processes=(SHOP, SCRATCH),
        file_systems=(FileSystem(path, kind, free, used),),
        paths=(
            PathCount(7, "openat", f"{path}/previews/1.png", 40),
            PathCount(8, "openat", f"{path}/tmp1", 400),
            PathCount(8, "unlink", f"{path}/tmp1", 380),
        ),
        calls=(
            CallCount(7, "write", 0, 90, size=60 * MB),
            CallCount(8, "write", 0, 900, size=900 * MB),
        ),
    )


def told(measured: Facts) -> list[Finding]:
    return [one for one in find(measured) if one.kind == "filling"]


def test_files_in_memory_that_nobody_removes() -> None:
    (finding,) = told(filling(*GROWS))
    assert finding.pids == (7,)
    assert finding.text.startswith(
        "files in memory (tmpfs) in /dev/shm/previews grow by 6.0 MB a second, always (104 MiB now)"
    )
    assert "written in save_preview (app.py:10)" in finding.evidence


def test_a_disk_that_is_soon_full() -> None:
    (finding,) = told(filling(*GROWS, kind="ext4", free=720 * MB, path="/var"))
    assert "files in /var/previews grow by 6.0 MB a second" in finding.text
    assert finding.text.endswith("it is full in 2 minutes")


@pytest.mark.parametrize(
    "well",
    [
        filling(*GROWS, kind="ext4"),
        filling(50 * MB, 80 * MB, 70 * MB, 110 * MB),
        filling(50 * MB, 110 * MB),
        filling(50 * MB, 51 * MB, 52 * MB),
    ],
    ids=["a disk with room", "files are removed", "two looks only", "slowly"],
)
def test_file_systems_that_are_well(well: Facts) -> None:
    assert told(well) == []
