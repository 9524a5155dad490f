"""Programs that jump through tables (gotox): each switch leads where C says."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.maps.map import Map
from purebpf.relocate import Linker

pytestmark = pytest.mark.needs("bpf")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/load_jump_tables.bpf.o")
X = 1000
ALL_ONES = (1 << 64) - 1


def shared(which: int) -> int:
    """The C function of that name."""
    results = [X + 1, X * 3, X - 5, X // 7, X << 3, X ^ 11, X | 13, X & 17, -X, ~X, X % 19]
    results += [X >> 2, X * X, 23, X + X]
    return results[which] if which < len(results) else 23


def own(which: int, base: int) -> int:
    """The C function of that name."""
    results = [41, base + X, base * X, base - X, base | X, base ^ X, base << 4, base >> 1]
    results += [base % 29, base // 3, ~base, -base, X * 31, X // 5, X + 37]
    return results[which] if which < len(results) else 41


@pytest.mark.needs("insn_array")
def test_every_case_of_every_switch_is_reached():
    with purebpf.load(SPEC) as obj:
        for which in range(16):
            other = (which * 7 + 3) % 16
            context = struct.pack("=II", which, other)
            first = obj.programs["first"].test_run(ctx=context).retval
            second = obj.programs["second"].test_run(ctx=context).retval
            assert first == (own(which, 43) + shared(other)) & 0xFFFFFFFF
            assert second == (shared(other) - own(which, 47)) & 0xFFFFFFFF


@pytest.mark.needs("insn_array")
def test_each_program_has_tables_of_its_own_and_keeps_them():
    linker = Linker(SPEC, [])
    with purebpf.load(SPEC) as obj:
        seen: set[int] = set()
        for name, program in obj.programs.items():
            tables = []
            for number in program.info.map_ids:
                with Map.from_id(number) as found:
                    if found.name == ".jumptables":
                        seen.add(number)
                        values = [found[index] for index in range(found.max_entries)]
                        tables.append(tuple(struct.unpack("=4I", value)[0] for value in values))
            assert sorted(tables) == sorted(linker.link(name).jump_tables.values())
        assert len(seen) == 4


@pytest.mark.needs("insn_array")
def test_the_log_of_a_refused_program_is_read_with_its_tables():
    code = SPEC.functions["second"].code
    broken = SPEC.functions["second"]._replace(
        code=code[:-16] + b"\x79\xa0\0\0\0\0\0\0" + code[-8:]
    )
    spec = SPEC._replace(functions={**SPEC.functions, "second": broken})
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(spec.only("second"))
    assert "gotox" in caught.value.log


@pytest.mark.needs("no_insn_array")
def test_a_kernel_without_such_jumps_is_named():
    with pytest.raises(purebpf.NotSupportedError) as caught:
        purebpf.load(SPEC)
    assert str(caught.value) == (
        "program 'first': a switch in it uses a jump table, and this kernel does not support "
        "instruction arrays (Linux 6.19); compile with -mcpu=v3 or -fno-jump-tables"
    )
