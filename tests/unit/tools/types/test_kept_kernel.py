"""Answers about kernel code of earlier runs: they hold as long as the code is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.dataflow.claims import Claim
from purebpf.dataflow.code import Access
from purebpf.dataflow.kernel_code import Span
from purebpf.dataflow.slab_evidence import Verdict
from purebpf.dataflow.stored import Answer
from purebpf.dataflow.types import Kind, Type
from purebpf.syscall import proc
from purebpf.tools.sampleip.slab_objects import SlabObject
from purebpf.tools.types import kept_kernel
from purebpf.tools.types.kept_kernel import KeptKernel

FUNCTION = Span(16, 48, "do_work")
OTHER = Span(64, 96, "do_more")
INODE = Type(Kind.STRUCT, "inode", 64)
ANSWER = Answer("do_work", Claim(INODE, "inode", "i_size", 8, 8, Access(True, False, 8), False))
UNKNOWN = Answer("do_more", "on the stack")
OBJECT = SlabObject("inode_cache", 64, 8)


def span(address: int) -> Span | None:
    return next((one for one in (FUNCTION, OTHER) if one.start <= address < one.end), None)


def code(byte: int) -> Callable[[int, int], bytes]:
    """Code that has changed in one function."""
    return lambda address, size: bytes([byte if address == FUNCTION.start else 1]) * size


@pytest.fixture(autouse=True)
def _boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernel, in each run."""
    monkeypatch.setattr(kept_kernel, "_types", lambda: b"BTF")
    monkeypatch.setattr(proc, "sysctl", lambda _: "boot")
    monkeypatch.setattr(proc, "modules", lambda: b"ext4 1 0 - Live 0x100\n")


def kept(where: Path, byte: int = 7, *, is_precise: bool = False) -> KeptKernel:
    read = code(byte)
    return KeptKernel(is_precise=is_precise, span=span, read=read, directory=str(where / "cache"))


def write(where: Path) -> None:
    first = kept(where)
    assert first.get(20) is None
    first.add(20, ANSWER)
    first.add(70, UNKNOWN)
    first.add(200, UNKNOWN)  # in no function of the kernel itself
    first.add_weighed(20, "rbx", OBJECT, (ANSWER, Verdict.RIGHT))
    first.add_weighed(70, "", None, (UNKNOWN, Verdict.NONE))
    first.save()


def test_another_run_has_the_answers_of_the_first(tmp_path: Path) -> None:
    write(tmp_path)
    again = kept(tmp_path)
    answer = again.get(20)
    assert answer is not None
    assert isinstance(answer.claim, Claim)
    assert (answer.function, answer.claim.member) == ("do_work", "i_size")
    assert answer.claim.type is not None
    assert (answer.claim.type.name, answer.claim.type.size) == ("inode", 64)
    assert again.get(70) == UNKNOWN
    assert again.get(200) is None
    assert kept(tmp_path, is_precise=True).get(20) is None
    (file,) = (tmp_path / "cache").iterdir()
    assert file.stat().st_mode & 0o77 == 0


def test_judgements_are_those_of_the_same_objects(tmp_path: Path) -> None:
    write(tmp_path)
    again = kept(tmp_path)
    answer = again.get(20)
    assert answer is not None
    assert again.weighed(20, answer, {"rbx": OBJECT, "rax": OBJECT}) == (answer, Verdict.RIGHT)
    assert again.weighed(20, answer, {"rax": OBJECT}) == (answer, Verdict.NONE)
    assert again.weighed(20, answer, {"rbx": OBJECT._replace(offset=16)}) is None
    assert again.weighed(70, UNKNOWN, {"rbx": OBJECT}) == (UNKNOWN, Verdict.NONE)
    assert again.weighed(24, UNKNOWN, {"rbx": OBJECT}) is None


def test_answers_about_patched_code_are_forgotten(tmp_path: Path) -> None:
    write(tmp_path)
    patched = kept(tmp_path, 8)
    assert patched.get(20) is None
    assert patched.weighed(20, ANSWER, {"rbx": OBJECT}) is None
    assert patched.get(70) == UNKNOWN
    patched.add(24, UNKNOWN)
    patched.save()
    assert kept(tmp_path, 8).get(24) == UNKNOWN
    assert kept(tmp_path, 8).get(20) is None
    assert kept(tmp_path).get(20) is None


@pytest.mark.parametrize("changed", ["boot", "modules", "types", "code"])
def test_another_kernel_has_no_answers_of_this_one(
    tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    if changed == "boot":
        monkeypatch.setattr(proc, "sysctl", lambda _: "another")
    elif changed == "modules":
        monkeypatch.setattr(proc, "modules", lambda: b"ext4 1 0 - Live 0x200\n")
    elif changed == "types":
        monkeypatch.setattr(kept_kernel, "_types", lambda: b"other BTF")
    else:
        monkeypatch.setattr(kept_kernel, "code_version", lambda: "another")
    assert kept(tmp_path).get(20) is None


def test_code_that_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    where = str(tmp_path / "cache")
    first = KeptKernel(is_precise=False, span=span, read=lambda *_: b"", directory=where)
    first.add(20, ANSWER)
    first.save()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("damage", [b"", b"{}", b"[" * 100_000, b"\xff", b'{"answers":[1]}'])
def test_a_damaged_file_is_dropped(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path)
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(damage)
    assert kept(tmp_path).get(20) is None
    assert not file.exists()
