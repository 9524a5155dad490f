"""Maps of before libbpf 1.0 in the kernel: used, or refused for fields that are not known."""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path

import pytest

import purebpf

DATA = Path(__file__).parents[3] / "data"

pytestmark = pytest.mark.needs("bpf", "syscall_programs")


def test_programs_use_them():
    with purebpf.load(DATA / "elf_legacy_maps.bpf.o") as loaded:
        assert loaded.programs["count_one"].test_run().retval == 0
        counts, last = loaded.maps["counts"], loaded.maps["last"]
        assert counts.info.flags == 1
        assert [(key, value.total, value.bytes) for key, value in counts.items()] == [(7, 1, 10)]
        slot = (1).to_bytes(4, "little")
        assert last[slot] == (11).to_bytes(8, "little"), "without a type, bytes"


def test_fields_that_are_not_known_are_refused_with_their_bytes():
    with pytest.raises(purebpf.NotSupportedError, match=r"map 'old': .* has 0000000002000000"):
        purebpf.load(DATA / "elf_bad_legacy_maps.bpf.o")


def test_the_caller_may_do_without_those_fields():
    spec = purebpf.read_object(DATA / "elf_bad_legacy_maps.bpf.o")
    plain = spec.maps["old"]._replace(extra=b"")
    with purebpf.load(spec._replace(maps={"old": plain})) as loaded:
        assert loaded.maps["old"].info.max_entries == 1


def test_iproute2s_maps_are_pinned_filled_and_jumped_to(bpffs: Path):
    path = DATA / "load_iproute2.bpf.o"
    digest = sha1(path.read_bytes(), usedforsecurity=False).hexdigest()
    with purebpf.load(path, pin_path=bpffs) as loaded:
        assert loaded.programs["entry"].test_run(bytes(64)).retval == 42
        assert list(loaded.maps["inner"].items()) == [(0, b"\x01\0\0\0")]
        pins = {str(each.relative_to(bpffs)) for each in (bpffs / "tc").glob("*/*")}
        assert pins == {"tc/globals/inner", f"tc/{digest}/outer"}
        with purebpf.load(path, pin_path=bpffs) as again:
            assert again.programs["entry"].test_run(bytes(64)).retval == 42
            assert list(loaded.maps["inner"].items()) == [(0, b"\x02\0\0\0")]


def test_a_custom_pinning_of_iproute2_is_refused(bpffs: Path):
    spec = purebpf.read_object(DATA / "load_iproute2.bpf.o")
    maps = {**spec.maps, "template": spec.maps["template"]._replace(pinning=4)}
    with pytest.raises(purebpf.NotSupportedError, match="map 'template': pinning is 4"):
        purebpf.load(spec._replace(maps=maps), pin_path=bpffs)
    assert not list((bpffs / "tc").glob("*/*"))
