"""The kernel's symbols in a file: for this boot, for who may see them, without modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.observe.symbols.kernel_symbols import KernelSymbols
from purebpf.symbols.frame import Frame, Reason, Unknown
from purebpf.syscall import proc

_CORE = b"".join(b"%016x T f%d\n" % (0xFFFFFFFF81000000 + 16 * n, n) for n in range(4000))
_END = b"%016x B _end\n" % 0xFFFFFFFF82000000
_MODULE = b"ffffffffc0001000 t first\t[ext4]\n"


@pytest.fixture
def kallsyms(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shown = tmp_path / "kallsyms"
    shown.write_bytes(_CORE + _END + _MODULE)
    monkeypatch.setattr(proc, "KALLSYMS", str(shown))
    monkeypatch.setattr(proc, "sysctl", lambda _name: "first-boot")
    return shown


def _name(symbols: KernelSymbols, address: int) -> str | Reason:
    found = symbols.resolve(address, 0)
    return found.reason if isinstance(found, Unknown) else found.name


def _kept(shown: Path) -> list[str]:
    return sorted(path.name for path in (shown.parent / "cache/purebpf/kernel").glob("*"))


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """How much of the file was asked for, each time; -1: all."""
    asked: list[int] = []
    read = proc.kallsyms
    monkeypatch.setattr(proc, "kallsyms", lambda size=-1: asked.append(size) or read(size))
    return asked


def test_the_second_run_does_not_read_all(kallsyms, reads) -> None:
    assert _name(KernelSymbols(), 0xFFFFFFFF81000011) == "f1"
    assert _kept(kallsyms) == ["first-boot"]
    reads.clear()
    second = KernelSymbols()
    assert [_name(second, 0xFFFFFFFF81000000 + 16 * n) for n in (0, 5, 3999)] == [
        "f0",
        "f5",
        "f3999",
    ]
    assert -1 not in reads


def test_modules_are_read_when_one_is_asked_for(kallsyms, reads) -> None:
    KernelSymbols().resolve(0xFFFFFFFF81000000, 0)
    kallsyms.write_bytes(_CORE + _END + b"ffffffffc0001000 t other\t[xfs]\n")
    reads.clear()
    second = KernelSymbols()
    found = second.resolve(0xFFFFFFFFC0001008, 0)
    assert isinstance(found, Frame)
    assert (found.name, found.module) == ("other", "xfs")
    assert _name(second, 0xFFFFFFFFC0001010) == "other"
    assert reads.count(-1) == 1


def test_the_text_is_kept_for_the_next_window_only(kallsyms, reads) -> None:
    first = KernelSymbols()
    first.resolve(0xFFFFFFFF81000000, 0)
    first.rest()
    assert first._table is not None, "to read all again takes 50 ms"
    second = KernelSymbols()
    second.resolve(0xFFFFFFFF81000000, 0)
    second.rest()
    assert second._table is not None
    second.rest()
    assert second._table is None
    reads.clear()
    assert _name(second, 0xFFFFFFFF81000050) == "f5"
    assert -1 not in reads


def test_what_was_loaded_while_the_text_was_away_is_seen(kallsyms, monkeypatch) -> None:
    KernelSymbols().resolve(0xFFFFFFFF81000000, 0)
    symbols = KernelSymbols()
    symbols.resolve(0xFFFFFFFF81000000, 0)
    symbols.refresh()
    symbols.rest()
    symbols.rest()
    assert symbols._table is None
    monkeypatch.setattr(symbols, "_next_look", 0.0)
    monkeypatch.setattr(proc, "modules", lambda: b"another")
    assert symbols.refresh()


def test_another_boot_has_a_file_of_its_own(kallsyms, monkeypatch) -> None:
    KernelSymbols().resolve(0xFFFFFFFF81000000, 0)
    monkeypatch.setattr(proc, "sysctl", lambda _name: "second-boot")
    kallsyms.write_bytes(_CORE.replace(b" f", b" g"))
    assert _name(KernelSymbols(), 0xFFFFFFFF81000010) == "g1"
    assert _kept(kallsyms) == ["first-boot", "second-boot"]


def test_zeros_are_not_kept_and_what_was_kept_is_not_shown_to_who_sees_zeros(kallsyms) -> None:
    hidden = b"".join(b"%016x T f%d\n" % (0, n) for n in range(4000))
    text = kallsyms.read_bytes()
    kallsyms.write_bytes(hidden)
    assert _name(KernelSymbols(), 0xFFFFFFFF81000010) is Reason.KERNEL_HIDDEN
    assert _kept(kallsyms) == []
    kallsyms.write_bytes(text)
    assert _name(KernelSymbols(), 0xFFFFFFFF81000010) == "f1"
    kallsyms.write_bytes(hidden)
    assert _name(KernelSymbols(), 0xFFFFFFFF81000010) is Reason.KERNEL_HIDDEN


def test_a_file_that_others_may_write_is_not_used(kallsyms) -> None:
    KernelSymbols().resolve(0xFFFFFFFF81000000, 0)
    (file,) = (kallsyms.parent / "cache/purebpf/kernel").iterdir()
    file.write_bytes(_CORE.replace(b" f3999", b" forged"))
    file.chmod(0o666)
    assert _name(KernelSymbols(), 0xFFFFFFFF81000000 + 16 * 3999) == "f3999"
