"""What CO-RE and attach targets need of the kernel's types is kept for later loads of an object."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import purebpf
from purebpf import objects
from purebpf.loader.host.kernel_build_id import kernel_build_id
from purebpf.loader.load import kept_links
from purebpf.loader.load.kernel_types import KernelTypes
from purebpf.loader.load.link_programs import link_programs
from purebpf.loader.load.prepare_spec import Prepared, prepare_spec
from purebpf.loader.types import kernel_btf as module
from purebpf.relocate.linked_program import LinkedProgram, Patched
from purebpf.spec import ObjectSpec

pytestmark = pytest.mark.needs("vmlinux_btf")

SHIPPED = ("process_tree", "task_registers", "offcpu")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a user without any."""
    if not kernel_build_id():
        pytest.skip("this kernel has no build id in /sys/kernel/notes")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "purebpf" / "links"


@pytest.fixture
def without_types(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let every look at the kernel's types fail from now on."""
    return lambda: monkeypatch.setattr(module, "kernel_btf", lambda: pytest.fail("read the types"))


def link(
    spec: ObjectSpec, btf: purebpf.Btf | None = None
) -> tuple[Prepared, Mapping[str, LinkedProgram]]:
    """The first two stages of a load."""
    with KernelTypes(spec, btf) as types:
        prepared = prepare_spec(spec, types, kconfig="", given={}, replaced={})
        linked = link_programs(prepared.spec, types)
    return prepared, linked


@pytest.mark.parametrize("name", SHIPPED)
def test_the_second_load_reads_no_types_and_links_the_same(
    kept: Path, without_types: Callable[[], None], name: str
) -> None:
    spec = objects.spec(name)
    prepared, linked = link(spec)
    (file,) = kept.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    without_types()
    again, linked_again = link(spec)
    assert linked_again == linked
    assert again.attach_targets == prepared.attach_targets
    assert any(linked[each].code != each for each in linked)


@pytest.mark.needs("bpf")
def test_the_second_load_of_a_user_loads(kept: Path, without_types: Callable[[], None]) -> None:
    spec = objects.spec("task_registers")
    for _ in range(2):
        with purebpf.load(spec) as loaded:
            assert loaded.programs
        without_types()
    assert list(kept.iterdir())


def test_programs_that_were_not_linked_before_are_added(
    kept: Path, without_types: Callable[[], None]
) -> None:
    spec = objects.spec("process_tree")
    names = sorted(name for name, program in spec.programs.items() if program.autoload)
    assert len(names) > 1
    for name in names:
        link(spec.only(name))
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    without_types()
    _, linked = link(spec)
    assert sorted(linked) == names
    assert file.read_bytes() == whole


def test_another_kernel_or_another_object_has_its_own(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = objects.spec("task_registers")
    link(spec)
    (file,) = kept.iterdir()
    function = next(each for each in spec.functions.values() if each.core_relocations)
    assert KernelTypes(spec).patched(function) is not None
    first = function.core_relocations[0]
    others = (
        function._replace(code=bytes(8) + function.code[8:]),
        function._replace(core_relocations=(first._replace(kind=first.kind + 1),)),
        function._replace(core_relocations=()),
    )
    for other in others:
        assert KernelTypes(spec).patched(other) is None
    assert spec.btf is not None
    types = spec._replace(btf=purebpf.Btf(spec.btf.data + b"\0"))
    assert KernelTypes(types).patched(function) is None
    assert KernelTypes(spec, spec.btf).patched(function) is None  # given types decide alone
    for name in ("../task_registers", "none"):
        assert KernelTypes(spec._replace(name=name)).patched(function) is None
    with monkeypatch.context() as patch:
        patch.setattr(kept_links, "kernel_build_id", lambda: b"\1" * 20)
        assert KernelTypes(spec).patched(function) is None
    with monkeypatch.context() as patch:
        patch.setattr(kept_links, "_own_code", lambda: b"matching.py 1 2")
        assert KernelTypes(spec).patched(function) is None
    assert KernelTypes(spec).patched(function) is not None
    assert [*kept.iterdir()] == [file]


def test_the_code_that_finds_the_answers_is_named() -> None:
    lines = kept_links._own_code().decode().splitlines()
    names = {line.split()[0] for line in lines}
    assert names >= {"matching.py", "value.py", "access.py", "core.py", "link.py", "parse.py"}
    path = Path(kept_links.__file__).parents[2] / "relocate/core.py"
    assert f"core.py {path.stat().st_mtime_ns} {os.path.getsize(path)}" in lines


def test_a_damaged_file_says_nothing_and_is_written_again(kept: Path) -> None:
    spec = objects.spec("task_registers")
    _, linked = link(spec)
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    function = next(each for each in spec.functions.values() if each.core_relocations)
    damages = (b"", whole[:-2], whole[: len(whole) // 2], whole + b"\0", b"\xff" * len(whole))
    for damaged in (*damages, whole + b"\1\0\0\0x"):
        file.write_bytes(damaged)
        assert KernelTypes(spec).patched(function) is None
        assert link(spec)[1] == linked
        assert file.read_bytes() == whole


@pytest.mark.parametrize("name", ["a\udca9", "a\x85b", "a b", "\u2028", ""])
def test_names_are_any_bytes(kept: Path, name: str) -> None:
    spec = objects.spec("task_registers")
    function = next(each for each in spec.functions.values() if each.core_relocations)
    answer = Patched(function.code, {3: f"no type {name}"})
    for _ in range(2):  # kept by the first, read by the second
        links = kept_links.KeptLinks(spec)
        assert links.patched(function) in (None, answer)
        assert links.type_id(4, name) in (0, 17)
        links.add_patched(function, answer)
        links.add_type_id(4, name, 17)
        links.save()
    assert kept_links.KeptLinks(spec).patched(function) == answer
    assert kept_links.KeptLinks(spec).type_id(4, name) == 17
    assert list(kept.iterdir())


def test_a_file_that_others_may_write_is_not_read(kept: Path) -> None:
    spec = objects.spec("task_registers")
    link(spec)
    (file,) = kept.iterdir()
    function = next(each for each in spec.functions.values() if each.core_relocations)
    file.chmod(0o666)
    assert KernelTypes(spec).patched(function) is None


def test_answers_that_depend_on_modules_are_not_kept(kept: Path) -> None:
    spec = objects.spec("task_registers")
    with KernelTypes(spec) as types:
        link_programs(spec, types)
        assert types.modules is not None
    assert not kept.exists()
