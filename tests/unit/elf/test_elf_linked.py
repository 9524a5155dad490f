"""Variables and maps of linked objects are where their ELF symbols say, whatever BTF says."""

from __future__ import annotations

import io
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from purebpf import build
from purebpf.btf.types.kinds import Datasec, Kind, Var
from purebpf.btf.types.parse import ids_of
from purebpf.elf import read_object
from purebpf.spec import ObjectSpec, RelocationKind

pytestmark = [pytest.mark.needs("clang", "bpftool"), pytest.mark.any_kernel]

_HEAD = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#define weak __attribute__((weak))
#define hidden __attribute__((visibility("hidden")))
#define MAP(kind, n) struct { __uint(type, BPF_MAP_TYPE_##kind); __uint(max_entries, n); \\
    __type(key, int); __type(value, int); }
"""

DECLARES = """
int first SEC(".data.shared") = 1;
weak int either SEC(".data.shared") = 10;
weak int replaced SEC(".data.shared") = 20;
static volatile int mine SEC(".data.shared") = 30;
extern int far[] SEC(".data.shared");
hidden int unseen SEC(".data.shared") = 44;
extern const volatile int constant SEC(".rodata.limits");
const volatile int own_constant SEC(".rodata.limits") = 77;
extern const volatile int plain_constant SEC(".rodata");
const volatile int own_plain_constant = 78;
extern int plain SEC(".data");
int own_plain = 79;
extern int zero SEC(".bss");
int own_zero;
extern int cpu_count SEC(".bss.percpu");
int own_cpu_count SEC(".bss.percpu");
extern MAP(ARRAY, 3) theirs SEC(".maps");
MAP(HASH, 5) ours SEC(".maps");
weak MAP(HASH, 6) replaced_map SEC(".maps");
extern int CONFIG_HZ __kconfig;
SEC("socket") int sum(struct __sk_buff *skb)
{
    int key = 0;
    bpf_map_lookup_elem(&ours, &key);
    bpf_map_lookup_elem(&theirs, &key);
    bpf_map_lookup_elem(&replaced_map, &key);
    own_zero++;
    own_cpu_count++;
    return first + either + replaced + mine + far[1] + constant + zero + unseen + own_constant +
           plain + plain_constant + own_plain_constant + own_plain + cpu_count + CONFIG_HZ;
}
char LICENSE[] SEC("license") = "GPL";
"""

DEFINES = """
int before SEC(".data.shared") = 3;
static volatile int mine SEC(".data.shared") = 31;
weak int either SEC(".data.shared") = 11;
int replaced SEC(".data.shared") = 21;
int far[3] SEC(".data.shared") = {5, 6, 7};
const volatile int constant_before SEC(".rodata.limits") = 8;
const volatile int constant SEC(".rodata.limits") = 9;
const volatile int plain_constant_before = 80;
const volatile int plain_constant = 81;
int plain_before = 82;
int plain = 83;
int zero_before;
int zero;
int cpu_count_before SEC(".bss.percpu");
int cpu_count SEC(".bss.percpu");
extern int CONFIG_NR_CPUS __kconfig;
MAP(HASH, 4) map_before SEC(".maps");
MAP(ARRAY, 3) theirs SEC(".maps");
MAP(HASH, 6) replaced_map SEC(".maps");
SEC("socket") int more(struct __sk_buff *skb)
{
    int key = 0;
    bpf_map_lookup_elem(&map_before, &key);
    bpf_map_lookup_elem(&replaced_map, &key);
    zero_before++;
    return mine + zero + CONFIG_NR_CPUS + before;
}
"""

VALUES = {
    "first": 1,
    "replaced": 21,
    "far": (5, 6, 7),
    "constant": 9,
    "own_constant": 77,
    "plain_constant": 81,
    "own_plain_constant": 78,
    "plain": 83,
    "own_plain": 79,
    "zero": 0,
    "own_zero": 0,
    "before": 3,
    "constant_before": 8,
    "plain_before": 82,
}


ORDERS = [("declares", "defines"), ("defines", "declares")]


@pytest.fixture(scope="module")
def objects() -> dict[str, bytes]:
    sources = {"declares": DECLARES, "defines": DEFINES}
    return {name: build.compile(_HEAD + c, cache=False) for name, c in sources.items()}


def symbols(data: bytes) -> dict[tuple[str, str], list[int]]:
    """Offsets of variables, by section and name, as pyelftools reads them."""
    elf = ELFFile(io.BytesIO(data))
    found: dict[tuple[str, str], list[int]] = {}
    (table,) = (s for s in elf.iter_sections() if isinstance(s, SymbolTableSection))
    for symbol in table.iter_symbols():
        if symbol["st_info"]["type"] == "STT_OBJECT" and isinstance(symbol["st_shndx"], int):
            section = elf.get_section(symbol["st_shndx"]).name
            found.setdefault((section, symbol.name), []).append(symbol["st_value"])
    return found


def check_places(data: bytes, spec: ObjectSpec) -> None:
    """Compare every entry of every DATASEC with the ELF symbols of its name."""
    assert spec.btf is not None
    expected = symbols(data)
    compared = 0
    for type_id in ids_of(spec.btf, Kind.DATASEC):
        datasec = spec.btf.type(type_id)
        assert isinstance(datasec, Datasec)
        if datasec.name in {".kconfig", ".ksyms"}:
            continue
        found: dict[tuple[str, str], list[int]] = {}
        ends = [0]
        for entry in datasec.entries:
            variable = spec.btf.type(entry.type_id)
            assert isinstance(variable, Var)
            found.setdefault((datasec.name, variable.name), []).append(entry.offset)
            assert entry.offset >= ends[-1], f"{datasec.name}: entries overlap"
            ends.append(entry.offset + entry.size)
        for key, offsets in found.items():
            assert sorted(offsets) == sorted(expected[key]), key
            compared += len(offsets)
    assert compared > 20


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_places_are_those_of_elf_symbols_in_both_orders(
    objects: dict[str, bytes], order: tuple[str, ...]
) -> None:
    data = build.link(*(objects[name] for name in order))
    spec = read_object(data)
    check_places(data, spec)
    assert {name: spec.get(name) for name in VALUES} == VALUES
    assert spec.get("either") == {"declares": 10, "defines": 11}[order[0]]
    assert "unseen" not in spec.variables
    assert {name: (m.type, m.max_entries) for name, m in spec.maps.items() if not m.section} == {
        "theirs": (2, 3),
        "ours": (1, 5),
        "replaced_map": (1, 6),
        "map_before": (1, 4),
    }
    used = [r.target for r in spec.functions["sum"].relocations if r.kind is RelocationKind.MAP]
    assert used == ["ours", "theirs", "replaced_map"]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_written_variable_changes_no_other_one(
    objects: dict[str, bytes], order: tuple[str, ...]
) -> None:
    spec = read_object(build.link(*(objects[name] for name in order)))
    names = [name for name, value in VALUES.items() if isinstance(value, int)]
    for name in names:
        changed = spec.set(**{name: 1000})
        assert {other for other in names if changed.get(other) != spec.get(other)} == {name}


def test_three_objects_of_which_the_last_defines(objects: dict[str, bytes]) -> None:
    middle = build.compile(
        _HEAD
        + 'int between SEC(".data.shared") = 50; extern int before SEC(".data.shared");'
        + 'SEC("socket") int third(void *skb) { return between + before; }\n',
        cache=False,
    )
    data = build.link(objects["declares"], middle, objects["defines"])
    spec = read_object(data)
    check_places(data, spec)
    assert (spec.get("between"), spec.get("before"), spec.get("replaced")) == (50, 3, 21)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_variables_of_an_arena(order: tuple[str, ...]) -> None:
    arena = "#define arena __attribute__((address_space(1)))\n"
    sources = {
        "declares": "struct { __uint(type, 33); __uint(max_entries, 4); __uint(map_flags, 1024); }"
        ' pages SEC(".maps"); int arena own = 1; extern int arena theirs SEC(".addr_space.1");'
        ' SEC("syscall") int use(void *c) { return own * 10 + theirs; }\n',
        "defines": "int arena before = 2; int arena theirs = 3;"
        ' SEC("syscall") int other(void *c) { return before; }\n',
    }
    objects = [
        build.compile(_HEAD + arena + sources[name], cpu="v4", cache=False) for name in order
    ]
    spec = read_object(build.link(*objects))
    assert {name: spec.get(name) for name in spec.variables} == {"own": 1, "before": 2, "theirs": 3}


def _through_llvm(folder: Path, compile_to_bitcode: Callable[[str, Path], None]) -> bytes:
    parts = []
    for name, source in {"declares": DECLARES, "defines": DEFINES}.items():
        parts.append(folder / f"{name}.bc")
        compile_to_bitcode(_HEAD + source, parts[-1])
    linked, target = folder / "linked.bc", folder / "linked.bpf.o"
    subprocess.run(["llvm-link-19", *parts, "-o", linked], check=True)
    command = ["clang-19", "-target", "bpf", "-O2", "-g", "-c", linked, "-o", target]
    subprocess.run(command, check=True)
    return target.read_bytes()


@pytest.mark.needs("llvm-link")
def test_llvm_links_the_same_variables(tmp_path: Path, objects: dict[str, bytes]) -> None:
    """The other way to link, before code is made, needs no repair: the values agree."""

    def compile_to_bitcode(source: str, target: Path) -> None:
        command = ["clang-19", "-target", "bpf", "-O2", "-g", "-emit-llvm", "-c", "-x", "c"]
        include = f"-I/usr/include/{sysconfig.get_config_var('MULTIARCH')}"
        command += [include, "-", "-o", str(target)]
        subprocess.run(command, input=source, text=True, check=True)

    theirs = read_object(_through_llvm(tmp_path, compile_to_bitcode))
    ours = read_object(build.link(objects["declares"], objects["defines"]))
    for name in VALUES:
        assert theirs.get(name) == ours.get(name), name
    assert {n: v.size for n, v in theirs.variables.items()} == {
        n: v.size for n, v in ours.variables.items()
    }
