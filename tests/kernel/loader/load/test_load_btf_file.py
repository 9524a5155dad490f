"""Kernel types from a file: `load(btf=path)`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.types.btf_file import read_btf_file
from purebpf.symbols.elf_image import ElfImage

CORE = Path(__file__).parents[3] / "data/core"
VMLINUX = "/sys/kernel/btf/vmlinux"


@pytest.mark.needs("bpf", "vmlinux_btf", "callbacks")
def test_this_kernels_types_by_path_make_the_same_programs():
    with (
        purebpf.load(CORE / "core_task.bpf.o") as usual,
        purebpf.load(CORE / "core_task.bpf.o", btf=VMLINUX) as given,
    ):
        for name, program in usual.programs.items():
            assert given.programs[name].info.tag == program.info.tag


@pytest.mark.needs("bpf", "vmlinux_btf", "callbacks")
def test_other_types_make_other_programs():
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(CORE / "core_task.bpf.o", btf=CORE / "core_loads.target.o")
    assert caught.value.poisoned == (
        "struct task_struct.group_leader: no struct task_struct on this kernel"
    )


def test_an_elf_file_and_its_btf_alone_are_the_same_types(tmp_path: Path):
    path = CORE / "core_loads.target.o"
    image = ElfImage.of_bytes(path.read_bytes())
    alone = tmp_path / "types.btf"
    alone.write_bytes(image.contents(image.section(".BTF")))
    assert read_btf_file(alone) == read_btf_file(path)
    assert read_btf_file(path).source == str(path)


def test_files_without_types(tmp_path: Path):
    with pytest.raises(purebpf.FormatError, match=r"section \.BTF: the section does not exist"):
        read_btf_file("/bin/true")
    text = tmp_path / "text"
    text.write_text("no types at all, but long enough for a header")
    with pytest.raises(purebpf.FormatError, match="is not BTF version 1"):
        read_btf_file(text)
    with pytest.raises(FileNotFoundError):
        read_btf_file(tmp_path / "nothing")
    hole = tmp_path / "hole"
    hole.write_bytes(b"\x9f\xeb\1\0")
    os.truncate(hole, 1 << 40)
    with pytest.raises(purebpf.FormatError, match="size: more than 256 MiB are not BTF"):
        read_btf_file(hole)
