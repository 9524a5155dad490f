"""Maps of before libbpf 1.0 in the kernel: used, or refused for what nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf

DATA = Path(__file__).parents[1] / "data"

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
    with pytest.raises(purebpf.NotSupportedError, match=r"map 'old': .* with 0000000002000000"):
        purebpf.load(DATA / "elf_bad_legacy_maps.bpf.o")


def test_the_caller_may_do_without_those_fields():
    spec = purebpf.read_object(DATA / "elf_bad_legacy_maps.bpf.o")
    plain = spec.maps["old"]._replace(extra=b"")
    with purebpf.load(spec._replace(maps={"old": plain})) as loaded:
        assert loaded.maps["old"].info.max_entries == 1
