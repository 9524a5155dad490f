"""What a report says about an object, and how it looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from purebpf.btf.types.parse import Btf
from purebpf.elf import read_object
from purebpf.relocate import Linker
from purebpf.spec import ObjectSpec
from purebpf.tools.inspect import InspectOptions, Report, describe
from purebpf.tools.inspect.model import CoreLine
from purebpf.tools.inspect.options import parse
from purebpf.tools.inspect.render import document, lines
from tests.support.builders.btf_random import random_kernel

DATA = Path(__file__).parents[3] / "data"
CORE = DATA / "core"


def report(name: str, *targets: Btf) -> Report:
    return describe(read_object(DATA / f"{name}.bpf.o"), targets)


def types(name: str) -> Btf:
    found = read_object(CORE / f"{name}.target.o").btf
    assert found is not None
    return found


def text(name: str, *targets: Btf) -> str:
    return "".join(lines(report(name, *targets)))


def test_jump_tables_are_counted() -> None:
    found = {each.name: each.jump_tables for each in report("load_jump_tables").programs}
    assert found == {"first": 2, "second": 2}
    assert "uses .data, 2 jump tables (Linux 6.19)\n" in text("load_jump_tables")
    assert "jump table" not in text("load_counter")


def test_programs_say_what_they_consist_of() -> None:
    (program,) = report("load_counter").programs
    assert (program.section, program.type) == ("tracepoint/raw_syscalls/sys_enter", "tracepoint")
    assert program.maps == (".rodata", ".data", ".bss", "calls")
    functions = {each.name: each for each in report("elf_functions").programs}
    spec = read_object(DATA / "elf_functions.bpf.o")
    linker = Linker(spec, [])
    for name, each in functions.items():
        linked = linker.link(name)
        assert each.instructions == len(linked.code) // 8
        assert {*each.functions, spec.programs[name].function} == set(linked.functions)


def test_names_cannot_move_the_cursor() -> None:
    raw = (DATA / "elf_core.bpf.o").read_bytes().replace(b"task_struct\0", b"\x1b[2J\nstruct\0")
    shown = "".join(lines(describe(read_object(raw), [])))
    assert "?[2J?struct" in shown
    assert "\x1b" not in shown


def test_maps_are_shown_with_their_types_in_c() -> None:
    maps = {each.name: each for each in report("load_counter").maps}
    calls = maps["calls"]
    assert (calls.type, calls.max_entries) == ("hash", 1024)
    assert (calls.key, calls.key_size) == ("__u64", 8)
    assert (calls.value, calls.value_size) == ("struct call", 16)
    assert (maps[".bss"].value, maps[".bss"].value_size) == ("", 8)


def test_globals_have_their_first_values() -> None:
    found = {each.name: each for each in report("elf_data").globals}
    assert (found["target_pid"].type, found["target_pid"].value) == ("volatile const __u32", 42)
    assert found["target_pid"].map == ".rodata"
    assert "CONFIG_HZ" not in {each.name for each in report("elf_externs").globals}


def test_externs_say_what_they_are() -> None:
    spec = read_object(DATA / "elf_externs.bpf.o")
    here = {"CONFIG_HZ": "250", "bpf_prog_active": "in vmlinux"}
    found = {each.name: each for each in describe(spec, None, externs=here).externs}
    assert {name: each.kind for name, each in found.items() if not each.weak} == {
        "bpf_prog_active": "variable",
        "init_task": "address",
        "bpf_rcu_read_lock": "function",
        "LINUX_KERNEL_VERSION": "configuration value",
    }
    assert (found["CONFIG_HZ"].here, found["CONFIG_HZ"].type) == ("250", "unsigned long")
    assert found["init_task"].here == ""


@pytest.mark.parametrize("name", ["core_values", "core_loads"])
def test_core_relocations_are_what_linking_makes_of_them(name: str) -> None:
    spec = read_object(CORE / f"{name}.bpf.o")
    target = types(name)
    found = describe(spec, [target]).core
    assert len(found) == sum(len(each.core_relocations) for each in spec.functions.values())
    linker = Linker(spec, [target])
    seen = 0
    for program in spec.programs:
        linked = linker.link(program)
        for key, start in linked.functions.items():
            for line in found:
                if line.function == key:
                    assert (start + line.instruction in linked.poisoned) == line.poisoned
                    assert line.poisoned == line.answer.startswith("poisoned: ")
                    seen += 1
    assert seen >= len(found)


def test_a_relocation_without_a_single_answer_does_not_hide_the_others() -> None:
    spec = read_object(CORE / "core_values.bpf.o")
    kernels = [core_on(spec, seed) for seed in range(20)]
    ambiguous = [
        found for found in kernels if any("would not load" in line.answer for line in found)
    ]
    assert ambiguous
    for found in ambiguous:
        refused = [line for line in found if "would not load" in line.answer]
        assert len(refused) < len(found)
        assert {(line.value, line.poisoned) for line in refused} == {(None, False)}
        assert all("ambiguous on this kernel" in line.answer for line in refused)


def test_an_unknown_kind_of_relocation_is_an_answer() -> None:
    spec = read_object(CORE / "core_values.bpf.o")
    key = next(key for key, each in spec.functions.items() if each.core_relocations)
    function = spec.functions[key]
    strange = [each._replace(kind=77) for each in function.core_relocations]
    functions = {**spec.functions, key: function._replace(core_relocations=tuple(strange))}
    found = [
        line for line in core_on(spec._replace(functions=functions), 1) if line.function == key
    ]
    assert {line.kind for line in found} == {"kind 77"}
    assert all("would not load" in line.answer for line in found)


def core_on(spec: ObjectSpec, seed: int) -> tuple[CoreLine, ...]:
    """The relocations of `spec` on a made-up kernel."""
    return describe(spec, [random_kernel(seed).btf()]).core


def test_without_types_nothing_is_matched() -> None:
    spec = read_object(CORE / "core_task.bpf.o")
    assert describe(spec, None).core == ()
    assert "CO-RE" not in "".join(lines(describe(spec, None)))


def test_text_has_a_part_only_where_there_is_something_to_show() -> None:
    assert ": little-endian, no license (not GPL), " in text("elf_unlicensed")
    assert text("elf_no_btf").splitlines()[0].endswith(", no BTF")
    shown = text("load_counter")
    assert "\nPROGRAMS\n" in shown
    assert "\nEXTERNS\n" not in shown
    assert "  calls    hash   1024 entries  key __u64 (8)  value struct call (16)\n" in shown


def test_notes_come_first() -> None:
    spec = read_object(DATA / "load_counter.bpf.o")
    shown = "".join(lines(describe(spec, [], notes=["something is odd"])))
    assert shown.splitlines()[1] == "note: something is odd"


def test_json_is_the_report() -> None:
    found = json.loads(document(report("elf_data")))
    assert list(found) == ["schema", *Report._fields]
    assert found["maps"][0]["name"] == report("elf_data").maps[0].name
    assert len(found["references"]) == len(report("elf_data").references)


def test_options_are_those_of_the_command_line() -> None:
    assert parse(["a.o"]) == InspectOptions("a.o")
    assert parse(["--btf", "k.btf", "--json", "-o", "x", "a.o"]) == InspectOptions(
        "a.o", "k.btf", format="json", output="x"
    )
