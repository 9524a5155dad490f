"""Objects of other projects and of older compilers: what libbpf makes of them, or says."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf.syscall import proc
from tests.support.builders.old_objects import with_old_relocations

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"
PACKET = bytes(64)
ODD = purebpf.read_object(DATA / "load_odd_sections.bpf.o")


def test_a_hash_of_maps_without_a_key_type_is_filled():
    with purebpf.load(DATA / "load_hash_of_maps.bpf.o") as obj:
        assert obj.programs["find"].test_run(PACKET).retval == 7
        assert list(obj.maps["by_number"]) == [b"\x02\0\0\0"]


def test_static_contents_have_relocations_of_either_type():
    old = with_old_relocations((DATA / "load_tail.bpf.o").read_bytes(), ".rel.maps")
    with purebpf.load(old) as obj:
        assert obj.programs["first"].test_run(PACKET).retval == 42


def test_static_programs_are_loaded_and_static_subprograms_are_not_programs():
    with purebpf.load(DATA / "load_static_programs.bpf.o") as obj:
        results = {name: each.test_run(PACKET).retval for name, each in obj.programs.items()}
    assert results == {"is_static": 7, "is_global": 11, "is_static_elsewhere": 3}


@pytest.mark.needs("tracefs")
@pytest.mark.parametrize("program", ODD.programs)
def test_a_section_with_a_malformed_target_is_named(program: str):
    with purebpf.load(ODD.only(program)) as obj:
        with pytest.raises(purebpf.FormatError) as caught:
            obj.attach()
        assert not obj.links
    section = ODD.programs[program].section
    assert str(caught.value).startswith(f'program {program!r}: SEC("{section}"): ')


def test_a_malformed_target_that_is_given_is_a_plain_value_error():
    with purebpf.load(ODD.only("without_a_category")) as obj:
        with pytest.raises(ValueError, match="category/name") as caught:
            obj.programs["without_a_category"].attach("sys_enter_lseek")
        assert not isinstance(caught.value, purebpf.PurebpfError)


@pytest.mark.needs("vmlinux_btf")
def test_a_symbol_may_be_at_address_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first per-CPU symbol of x86_64 was: until 9d7de2aa8b41 ("Use relative percpu...")."""
    spec = purebpf.read_object(DATA / "load_ksyms.bpf.o").only("use_symbols")
    kallsyms = tmp_path / "kallsyms"
    monkeypatch.setattr(proc, "KALLSYMS", str(kallsyms))
    kallsyms.write_text("0000000000000000 A schedule\nffffffff81000000 T _stext\n")
    with purebpf.load(spec) as obj:
        assert obj.programs


def test_maps_that_only_have_the_names_of_the_usdt_header_are_ordinary():
    """Found by `mutate.py load`: an object without the header's struct was a traceback."""
    data = (DATA / "attach_usdt.bpf.o").read_bytes()
    assert data.count(b"\0args\0") == 1
    spec = purebpf.read_object(data.replace(b"\0args\0", b"\0argz\0"))
    name = next(iter(spec.programs))
    with purebpf.load(spec.only(name)) as obj:
        program = obj.programs[name]
        with pytest.raises(purebpf.NotSupportedError, match=r"object with bpf/usdt\.bpf\.h"):
            program.attach("libc.so.6:libc:setjmp")
