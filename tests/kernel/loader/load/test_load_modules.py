"""What kernel modules have: types, functions to call, functions to watch."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf import asm
from purebpf.btf.types.kinds import Kind, Struct
from purebpf.btf.types.parse import Btf
from purebpf.loader.types.btf_modules import Modules
from tests.support.host import modules

DATA = Path(__file__).parents[3] / "data"
MODULE = "nf_conntrack"
PRIME = 7

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "modules")


@pytest.fixture(autouse=True, scope="module")
def _conntrack() -> None:
    if modules.folder() is not None:
        modules.load_conntrack()


@pytest.fixture
def known() -> Iterator[Modules]:
    with Modules() as found:
        yield found


def test_the_types_of_every_module_continue_those_of_vmlinux(known: Modules):
    names = {path.name for path in Path("/sys/kernel/btf").iterdir()} - {"vmlinux"}
    assert MODULE in names
    assert set(known.types()) == names
    for types in known.types().values():
        assert types.base is purebpf.kernel_btf()
        assert len(types) > len(purebpf.kernel_btf())


@pytest.mark.needs("bpftool")
def test_bpftool_finds_the_same_functions(known: Modules):
    types = known.types()[MODULE]
    own = range(len(purebpf.kernel_btf()), len(types))
    dump = ["bpftool", "btf", "dump", "file", types.source, "-B", "/sys/kernel/btf/vmlinux"]
    lines = subprocess.run(dump, check=True, capture_output=True, text=True).stdout.splitlines()
    theirs = {
        (int(line[1 : line.index("]")]), line.split("'")[1]) for line in lines if "] FUNC '" in line
    }
    assert {(i, types.name(i)) for i in own if types.kind(i) is Kind.FUNC} == theirs


def test_a_type_is_found_with_the_module_that_has_it(known: Modules):
    (found,) = known.find("nf_conntrack_find_get", Kind.FUNC)
    assert (found.module, found.btf.name(found.type_id)) == (MODULE, "nf_conntrack_find_get")
    assert known.find("schedule", Kind.FUNC) == []


def test_a_descriptor_is_opened_once_and_closed_with_the_rest():
    with Modules() as found:
        assert found.descriptor(MODULE) == found.descriptor(MODULE)
        with pytest.raises(purebpf.NotSupportedError, match="'nothing': the module is not loaded"):
            found.descriptor("nothing")


def test_functions_of_a_module_are_called():
    with purebpf.load(DATA / "load_module.bpf.o") as loaded:
        loaded.programs["look_up"].test_run(bytes(64))
        assert loaded.globals["error"] == -2, "ENOENT: no such connection"
        assert loaded.globals["found"] == 0


def test_core_finds_types_that_only_a_module_has(known: Modules):
    types: Btf = known.types()[MODULE]
    structs = [types.type(type_id) for type_id in types.find("nf_conntrack_helper", Kind.STRUCT)]
    offsets = {
        member.bit_offset // 8
        for found in structs
        if isinstance(found, Struct)
        for member in found.members
        if member.name == "expect_class_max"
    }
    with purebpf.load(purebpf.read_object(DATA / "load_module.bpf.o").only("ask")) as loaded:
        loaded.programs["ask"].test_run()
        assert loaded.globals["exists"] == 1
        assert {loaded.globals["offset"]} == offsets


def test_given_types_are_the_only_ones_asked():
    spec = purebpf.read_object(DATA / "load_module.bpf.o").only("ask")
    with pytest.raises(purebpf.VerifierError) as caught:
        purebpf.load(spec, btf="/sys/kernel/btf/vmlinux")
    assert "no struct nf_conntrack_helper" in caught.value.poisoned


WATCHERS = [
    *(
        pytest.param(name, marks=pytest.mark.needs("trampolines"))
        for name in ("by_name", "by_module")
    ),
    *(
        pytest.param(name, marks=pytest.mark.needs("tracing_multi"))
        for name in ("by_pattern", "at_the_end")
    ),
    pytest.param("by_probe", marks=pytest.mark.needs("kprobes")),
    pytest.param("by_probes", marks=pytest.mark.needs("kprobe_multi")),
]


@pytest.mark.parametrize("way", WATCHERS)
def test_every_call_of_a_modules_function_is_counted_while_it_is_watched(way: str):
    with (
        purebpf.load(DATA / "load_module.bpf.o") as caller,
        purebpf.load(purebpf.read_object(DATA / "load_module_target.bpf.o").only(way)) as watcher,
    ):
        look_up, program = caller.programs["look_up"], watcher.programs[way]
        if way in ("by_name", "by_module"):
            assert program.info.attach_btf_id >= len(purebpf.kernel_btf())
        with program.attach():
            for _ in range(PRIME):
                look_up.test_run(bytes(64))
        look_up.test_run(bytes(64))
        assert watcher.globals["calls"] == PRIME


def test_a_module_that_does_not_have_the_function():
    spec = purebpf.read_object(DATA / "load_module_target.bpf.o").only("by_another_module")
    with pytest.raises(
        purebpf.NotSupportedError, match="module 'nf_tables' does not have function 'nf_c"
    ):
        purebpf.load(spec)


@pytest.mark.parametrize(
    ("section", "meant"),
    [
        ("tp_btf/sched_swich", "sched_switch"),
        ("iter/tsk", "task"),
        ("fentry/vfs_reed", "vfs_read"),
        ("lsm/file_opn", "file_open"),
    ],
)
def test_a_misspelt_target_names_similar_ones(section, meant):
    target = section.partition("/")[2]
    code = asm.Program("wanted", section)
    code.move(asm.R0, 0)
    code.exit()
    with pytest.raises(
        purebpf.NotSupportedError, match=rf"does not have .*'{target}'.* similar: {meant}\b"
    ):
        purebpf.load(asm.build("tool", [code]))
