"""The kernel's types are indexed once for all runs; a file that others may write is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.btf.types import parse
from purebpf.btf.types.parse import Btf
from purebpf.loader.host.kernel_build_id import kernel_build_id
from purebpf.loader.types import kernel_btf as module
from purebpf.loader.types.kept_index import kept_index

pytestmark = pytest.mark.needs("vmlinux_btf")

NAMES = ("task_struct", "int", "btf_trace_sched_switch", "no such type")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a user without any."""
    if not kernel_build_id():
        pytest.skip("this kernel has no build id in /sys/kernel/notes")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "purebpf" / "btf"


def answers(btf: Btf) -> list[object]:
    """Ids and types by some names, flavours included."""
    ids = [btf.find_essential(name) for name in NAMES]
    return [*ids, *(btf.type(type_id) for some in ids for type_id in some), len(btf)]


def test_the_second_run_reads_the_index(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = module.kernel_btf.__wrapped__()
    (file,) = kept.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(parse, "find_starts", lambda *_: pytest.fail("built the index"))
    monkeypatch.setattr(parse, "NameIndex", lambda *_: pytest.fail("listed the names"))
    second = module.kernel_btf.__wrapped__()
    assert answers(second) == answers(first)


def test_a_damaged_file_is_written_again(kept: Path) -> None:
    first = module.kernel_btf.__wrapped__()
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-2], whole[:1000] + b"\0" * (len(whole) - 1000)):
        file.write_bytes(damaged)
        assert kept_index(first.data, "kernel") is None
        assert answers(module.kernel_btf.__wrapped__()) == answers(first)
        assert file.read_bytes() == whole


def test_a_file_that_others_may_write_is_not_read(kept: Path) -> None:
    data = module.kernel_btf.__wrapped__().data
    (file,) = kept.iterdir()
    assert kept_index(data, "kernel") is not None
    file.chmod(0o666)
    assert kept_index(data, "kernel") is None
    file.chmod(0o600)
    kept.chmod(0o777)
    assert kept_index(data, "kernel") is None
    kept.chmod(0o700)
    target = file.with_name("elsewhere")
    file.rename(target)
    file.symlink_to(target)
    assert kept_index(data, "kernel") is None


def test_an_index_of_another_kernel_is_not_used(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = module.kernel_btf.__wrapped__().data
    (file,) = kept.iterdir()
    other = bytearray(data)
    other[24] ^= 1  # the first type's name
    assert kept_index(bytes(other[:-1]), "kernel") is None
    for build_id in (b"\1" * 20, b""):
        monkeypatch.setattr(
            "purebpf.loader.types.kept_index.kernel_build_id", lambda given=build_id: given
        )
        assert kept_index(data, "kernel") is None
    assert file.exists()
