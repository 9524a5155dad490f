"""Programs made at run time: what `build` says of them, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from purebpf import asm
from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.disassembler import disassemble
from purebpf.abi.instruction import PSEUDO_CALL, unpack
from purebpf.errors import SchemaError
from purebpf.relocate.join import calls_of
from purebpf.spec import ProgramSpec, Relocation, RelocationKind
from tests.support.builders.elf_builder import ElfBuilder

CALLS = asm.MapSpec("calls", bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)


def counting() -> asm.Program:
    code = asm.Program("count", "raw_tp/sys_enter")
    out = code.label()
    code.store_constant(asm.R10, -4, 0, 4)
    code.call_helper("map_lookup_elem", asm.MapName("calls"), asm.Stack(-4))
    code.jump("==", asm.R0, 0, out)
    code.move(asm.R1, 1)
    code.atomic_add(asm.R0, 0, asm.R1, 8)
    code.place(out)
    code.move(asm.R0, 0)
    code.exit()
    return code


def test_a_program_is_what_its_section_says() -> None:
    spec = asm.build("counter", [counting()], maps=[CALLS])
    assert spec.programs == {
        "count": ProgramSpec(
            name="count",
            function="count",
            section="raw_tp/sys_enter",
            sec_prefix="raw_tp",
            type=bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT,
            attach_type=0,
            attach_target="sys_enter",
        )
    }
    assert spec.maps == {"calls": CALLS}
    assert spec.license == "GPL"


def test_maps_are_referred_to_by_name() -> None:
    code = asm.Program("count", "xdp")
    code.map(asm.R1, "calls")
    code.map_value(asm.R2, "calls", 16)
    code.exit()
    relocations = asm.build("counter", [code], maps=[CALLS]).functions["count"].relocations
    assert relocations == (
        Relocation(0, RelocationKind.MAP, "calls"),
        Relocation(16, RelocationKind.DATA, "calls", 16),
    )


def test_functions_are_called_by_name() -> None:
    code = asm.Program("main", "xdp")
    code.call_function("part")
    code.exit()
    part = asm.Function("part")
    part.move(asm.R0, 2)
    part.exit()
    spec = asm.build("two", [code, part])
    main = spec.functions["main"]
    assert main.relocations == (Relocation(0, RelocationKind.CALL, "part"),)
    assert unpack(main.code)[0].src == PSEUDO_CALL
    assert list(spec.programs) == ["main"]
    assert [spec.functions[name].linkage for name in ("main", "part")] == ["global", "static"]


def test_externs_are_left_to_who_links_them() -> None:
    code = asm.Program("main", "perf_event")
    code.call_extern("user_stack")
    code.call_extern("user_stack")
    code.exit()
    spec = asm.build("walks", [code])
    main = spec.functions["main"]
    assert main.relocations == (
        Relocation(0, RelocationKind.EXTERN, "user_stack"),
        Relocation(8, RelocationKind.EXTERN, "user_stack"),
    )
    assert unpack(main.code)[0].src == PSEUDO_CALL
    assert [(extern.name, extern.section) for extern in spec.externs.values()] == [
        ("user_stack", ".ksyms")
    ]
    assert calls_of(spec, ("user_stack",)) == {"user_stack": ("main",)}


def test_lines_are_those_of_the_python_that_made_them() -> None:
    code = asm.Program("one", "xdp")
    line = sys._getframe().f_lineno
    code.move(asm.R0, 1)  # the first
    code.call_helper("ktime_get_ns")
    code.exit()
    spec = asm.build("lines", [code])
    assert spec.btf is not None
    shown = [
        (info.offset, spec.btf.string(info.file_name), spec.btf.string(info.line), info.line_col)
        for info in spec.functions["one"].line_info
    ]
    assert shown == [
        (0, __file__, "code.move(asm.R0, 1)  # the first", line + 1 << 10),
        (8, __file__, 'code.call_helper("ktime_get_ns")', line + 2 << 10),
        (16, __file__, "code.exit()", line + 3 << 10),
    ]


def test_arguments_go_where_a_helper_looks_for_them() -> None:
    code = asm.Program("one", "xdp")
    code.call_helper("bpf_map_update_elem", asm.MapName("calls"), asm.Stack(-8), asm.R3, 1 << 40)
    code.copy(asm.R1, asm.R6)
    spec = asm.build("one", [code], maps=[CALLS])
    assert [text for _, text in disassemble(unpack(spec.functions["one"].code))] == [
        "(18) r1 = 0x0",
        "(bf) r2 = r10",
        "(07) r2 += -8",
        "(18) r4 = 0x10000000000",
        "(85) call bpf_map_update_elem#2",
        "(bf) r1 = r6",
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("map_lookup", 0), r"unknown helper 'map_lookup'; similar: map_lookup_"),
        (("ktime_get_ns", 1, 2, 3, 4, 5, 6), "5 arguments at most, not 6"),
        (("map_lookup_elem", asm.R6, asm.R1), "argument 2 is r1, which now has argument 1"),
    ],
)
def test_a_call_that_cannot_be_is_refused(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        asm.Program("one", "xdp").call_helper(*arguments)  # type: ignore[arg-type]


def test_what_does_not_fit_together_is_refused() -> None:
    code = counting()
    with pytest.raises(SchemaError, match="count refers to 'calls', which is not here"):
        asm.build("none", [code])
    with pytest.raises(SchemaError, match="two functions have the name count"):
        asm.build("two", [code, code], maps=[CALLS])
    with pytest.raises(SchemaError, match="two maps have the name calls"):
        asm.build("two", [code], maps=[CALLS, CALLS])
    with pytest.raises(SchemaError, match="program one: unknown section 'nowhere'"):
        asm.build("nowhere", [asm.Program("one", "nowhere")])
    with pytest.raises(SchemaError, match="not a name for a program"):
        asm.Program("one two", "xdp")
    with pytest.raises(SchemaError, match="by name, not by label"):
        code.call_function(code.label())


@pytest.mark.needs("bpftool")
def test_bpftool_reads_the_same_types(tmp_path) -> None:
    btf = asm.build("counter", [counting()], maps=[CALLS]).btf
    assert btf is not None
    builder = ElfBuilder()
    builder.section(".BTF", bytes(btf.data))
    path = tmp_path / "types.o"
    path.write_bytes(builder.build())
    command = ["bpftool", "btf", "dump", "file", path]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.findall(r"^\[\d+\] (\w+) '([^']*)'", shown, re.MULTILINE) == [
        ("INT", "int"),
        ("FUNC_PROTO", "(anon)"),
        ("FUNC", "count"),
    ]


def test_the_path_of_a_source_may_have_any_bytes() -> None:
    names = {"asm": asm}
    text = "code = asm.Program('count', 'raw_tp/sys_enter')\ncode.move(asm.R0, 0)\ncode.exit()\n"
    exec(compile(text, "/tmp/\udcff/tool.py", "exec"), names)  # as os.fsdecode gives it
    assert asm.build("counter", [names["code"]]).functions["count"].line_info
