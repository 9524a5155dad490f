"""The kernel takes the BTF that read_object completes."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.elf import read_object
from purebpf.loader.load.upload_btf import upload_btf
from purebpf.syscall import bpf

DATA = Path(__file__).parents[3] / "data"
OBJECTS = sorted(
    path
    for path in DATA.glob("elf_*.bpf.o")
    if not path.name.startswith(("elf_bad_", "elf_big_endian", "elf_no_btf"))
)


@pytest.mark.needs("bpf")
@pytest.mark.filterwarnings("ignore:.*does not relocate:RuntimeWarning")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_the_kernel_takes_repaired_btf(path: Path) -> None:
    btf = read_object(path).btf
    assert btf is not None
    with upload_btf(btf) as uploaded:  # in the words that this kernel knows
        assert uploaded.descriptor is not None
        assert uploaded.functions


@pytest.mark.needs("bpf")
def test_the_kernel_refuses_what_clang_wrote() -> None:
    """Else the repair would prove nothing: extern variables of .ksyms, sections of size 0."""
    data = (DATA / "elf_externs.bpf.o").read_bytes()
    start = data.index(b"\x9f\xeb\x01\x00\x18\x00\x00\x00")
    types, strings = (
        int.from_bytes(data[start + at : start + at + 4], "little") for at in (12, 20)
    )
    with pytest.raises(OSError, match="EINVAL"):
        bpf.btf_load(data[start : start + 24 + types + strings])
