"""`purebpf inspect --stubs`: mypy --strict knows an object's maps, globals and fields."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.abi.bpf import BPF_F_STACK_BUILD_ID, bpf_map_type
from purebpf.build.stubs import stubs as stubs_of
from purebpf.spec import MapSpec, ObjectSpec, VariableSpec
from tests.commands.conftest import ROOT
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.oracles.type_check import mypy, pyright

HASH = bpf_map_type.BPF_MAP_TYPE_HASH

pytestmark = pytest.mark.any_kernel

USER = """
from typing import NamedTuple

from load_counter import call, load, read_object


class Count(NamedTuple):
    total: int
    last_cpu: int


def use(path: str) -> int:
    with load(read_object(path).set(step=3).only("count_calls").resize(calls=10)) as obj:
        obj.globals["target_pid"] = 1
        obj.programs["count_calls"].attach()
        for key, seen in obj.maps["calls"].items():
            print(key.bit_length(), seen.total + seen.last_cpu)
        obj.maps["calls"][3] = {"total": 1}
        obj.maps["calls"].update({4: call(1, 2), 5: (3, 4)})
        assert obj.maps["calls"].get(4) is None
        print([total + cpu for total, cpu in obj.maps["calls"].bind(value=Count).values()])
        print(obj.maps["calls"].pop(4).total, sum(obj.maps["calls"].keys()))
        return obj.maps["calls"][3].total + obj.globals["calls_seen"]
"""

RINGS = """
import sampleip
import stream_calls


def use(path: str) -> int:
    with stream_calls.load(path) as obj, obj.maps["moments"].reader(lost=lambda: 0) as ring:
        print(ring.drain_numpy(), [view.nbytes for view in ring.views()])
    with sampleip.load(path) as obj2, obj2.maps["events"].reader(pages=8) as buffer:
        return buffer.lost
"""

FIELDS = """
from __future__ import annotations

from fields import load


def use(path: str) -> int:
    with load(path) as obj:
        for key, flow in obj.maps["flows"].items():
            assert obj.maps["flows"][key] == obj.maps["flows"][{"port": key.port}]
            print(flow.bytes.bit_length(), flow.mac.hex(), flow.ports[0].bit_length())
            print(flow.str.upper(), flow.name.upper(), flow.count.bit_length())
        return flow.hop.ttl + flow.last.ttl + obj.globals["total"].ttl
"""

STACKS = """
from stacks import load


def use(path: str) -> None:
    with load(path) as obj:
        for stack in obj.maps["stacks"].values():
            print([address.bit_length() for address in stack])
        print([frame.build_id.hex() for frame in obj.maps["files"][1]])
        print(obj.maps["odd"][1].hex())
"""

MISTAKES = {
    'obj.maps["cals"]': 'No overload variant of "__getitem__" of "Maps"',
    'obj.programs["count_cals"]': 'for "Programs"',
    'obj.globals["stepp"]': 'No overload variant of "__getitem__" of "Globals"',
    'obj.globals["stepp"] = 1': 'No overload variant of "__setitem__" of "Globals"',
    'obj.maps["calls"].get(3).total': '"None" of "call | None" has no attribute "total"',
    'obj.maps["calls"].pop(3).upper()': 'has no attribute "upper"',
    'load("x", lgo_level=1)': 'argument "lgo_level" for "load"; did you mean "log_level"?',
    'read_object("x").set(stpe=1)': 'Unexpected keyword argument "stpe"',
    'read_object("x").set(step="1")': 'incompatible type "str"; expected "int | bytes"',
    'read_object("x").only("count_cals")': "incompatible type \"Literal['count_cals']\"",
    'obj.globals["step"] = {"step": 1}': "argument types",
    'obj.maps["calls"][3].totl': 'has no attribute "totl"',
    'obj.maps["calls"]["three"]': "Invalid index type",
    'obj.globals["step"].upper()': 'has no attribute "upper"',
}


def stubs(name: str, folder: Path) -> Path:
    path = folder / (Path(name).name.partition(".")[0] + ".py")
    command = [sys.executable, "-m", "purebpf", "inspect", name, "--stubs", "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mypy")
    found = tmp_path_factory.mktemp("stubs")
    stubs("tests/data/load_counter.bpf.o", found)
    return found


def test_a_user_of_the_module_is_checked(folder: Path) -> None:
    user = folder / "user.py"
    user.write_text(USER)
    assert mypy(folder, user).startswith("Success")
    wrong = "".join(f"    {line}\n" for line in MISTAKES)
    user.write_text(f"{USER}\n\nwith load('x') as obj:\n{wrong}")
    said = mypy(folder, user)
    assert f"Found {len(MISTAKES)} errors" in said
    for problem in MISTAKES.values():
        assert problem in said, said


def test_pyright_finds_the_same_mistakes(folder: Path) -> None:
    user = folder / "pyright_user.py"
    lines = [*USER.splitlines(), "with load('x') as obj:", *(f"    {line}" for line in MISTAKES)]
    user.write_text("\n".join(lines) + "\n")
    first = len(lines) - len(MISTAKES) + 1
    assert pyright(folder, user, folder / "load_counter.py") == {
        (user, line) for line in range(first, first + len(MISTAKES))
    }


def test_a_ring_has_a_reader_of_its_kind(folder: Path) -> None:
    for name in ("tests/data/stream_calls.bpf.o", "purebpf/objects/sampleip.bpf.o"):
        stubs(name, folder)
    user = folder / "rings.py"
    user.write_text(RINGS)
    said = mypy(folder, user)
    assert said.startswith("Success"), said


def module(folder: Path, name: str, spec: ObjectSpec) -> Path:
    path = folder / f"{name}.py"
    path.write_text(stubs_of(spec))
    return path


def test_fields_may_be_called_like_types_and_methods_of_tuples(folder: Path) -> None:
    built = BtfBuilder()
    u8, u32 = built.int("__u8", 1), built.int("__u32", 4)
    text = built.array(built.int("char", 1, char=True), 8)
    hop = built.struct("hop", [("ttl", u32)])
    port = built.struct("key", [("port", u32)])
    numbers = [("bytes", u32), ("tuple", u32), ("count", u32), ("index", u32), ("mac_type", u32)]
    arrays = [("mac", built.array(u8, 6)), ("pad", built.array(u8, 2))]
    arrays += [("ports", built.array(u32, 2)), ("str", text), ("name", text)]
    flow = built.struct("flow", [*numbers, *arrays, ("hop", hop), ("last", hop)])
    maps = {"flows": MapSpec("flows", HASH, 4, 60, 10, key_type_id=port, value_type_id=flow)}
    total = {"total": VariableSpec("total", ".bss", 0, 4, hop)}
    spec = ObjectSpec("x", "x", "little", "", {}, {}, maps, total, btf=built.btf())
    user = folder / "fields_user.py"
    user.write_text(FIELDS)
    said = mypy(folder, module(folder, "fields", spec), user)
    assert said.startswith("Success"), said


def test_a_stack_is_a_tuple_of_addresses_or_frames(folder: Path) -> None:
    kind = bpf_map_type.BPF_MAP_TYPE_STACK_TRACE
    maps = {
        "stacks": MapSpec("stacks", kind, 4, 1016, 10),
        "files": MapSpec("files", kind, 4, 320, 10, BPF_F_STACK_BUILD_ID),
        "odd": MapSpec("odd", kind, 4, 1, 10),
    }
    user = folder / "stacks_user.py"
    user.write_text(STACKS)
    spec = ObjectSpec("x", "x", "little", "", {}, {}, maps, {})
    said = mypy(folder, module(folder, "stacks", spec), user)
    assert said.startswith("Success"), said


def test_every_kind_of_object_has_a_module_that_checks(folder: Path) -> None:
    names = ["purebpf/objects/summary.bpf.o", "purebpf/objects/profile.bpf.o"]
    names += [
        "tests/data/elf_maps.bpf.o",
        "tests/data/elf_no_btf.bpf.o",
        "tests/data/elf_data.bpf.o",
    ]
    made = [stubs(name, folder) for name in names]
    assert mypy(folder, *made).startswith("Success")
    assert pyright(folder, *made) == set()


@pytest.mark.needs("bpf")
def test_the_module_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    import load_counter

    with load_counter.load(ROOT / "tests/data/load_counter.bpf.o") as obj:
        obj.maps["calls"][3] = {"total": 4, "last_cpu": 1}
        assert obj.maps["calls"][3].total == 4
        assert isinstance(obj.globals["step"], int)


@pytest.mark.nightly  # mypy once more
def test_an_element_of_an_array_is_typed_and_may_be_set(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    stubs("tests/data/net_cgroup.bpf.o", tmp_path)
    user = tmp_path / "user.py"
    user.write_text(
        "from net_cgroup import load\n\n"
        "with load('x') as obj:\n"
        "    obj.globals['hits'][3] = 5\n"
        "    print(obj.globals['hits'][3].bit_length(), sum(obj.globals['hits']))\n"
        "    obj.globals['hits'] = (1, 2, 3)\n"
        "    obj.globals['hits'][3].upper()\n"
    )
    said = mypy(tmp_path, user)
    assert "Found 1 error" in said
    assert 'user.py:7: error: "int" has no attribute "upper"' in said


def test_names_that_python_cannot_write_are_no_mistake(folder: Path) -> None:
    built = BtfBuilder()
    u32 = built.int("__u32", 4)
    for count, names in enumerate((("class",), ("class", "limit"))):
        variables = {name: VariableSpec(name, ".data", 0, 4, u32) for name in names}
        maps = {name: MapSpec(name, HASH, 4, 4, 1) for name in ("odd.map", "plain")[-1 - count :]}
        spec = ObjectSpec("x", "x", "little", "", {}, {}, maps, variables, btf=built.btf())
        said = mypy(folder, module(folder, f"odd{count}", spec))
        assert said.startswith("Success"), said
