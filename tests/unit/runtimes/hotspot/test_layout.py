"""The layout that a JVM describes, and descriptions that are refused in words."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.runtimes.hotspot import layout as layouts
from purebpf.runtimes.hotspot.layout import LayoutError, read_jvm
from purebpf.runtimes.memory import Memory
from tests.unit.runtimes.hotspot.fake_jvm import BASE, RELEASES, SIZE, VERSIONS, FakeJvm, golden


def read(jvm: FakeJvm) -> layouts.Jvm:
    return read_jvm(Memory(jvm.read), jvm.symbols)


def refused(jvm: FakeJvm) -> str:
    with pytest.raises(LayoutError) as error:
        read(jvm.describe())
    return str(error.value)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_as_it_describes_itself(version: int) -> None:
    jvm = read(FakeJvm(version).describe())
    assert (jvm.release, jvm.layout) == (RELEASES[version], golden(version))
    assert len(set(jvm.addresses)) == 5


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_field_is_named(version: int) -> None:
    needed = [name for names in layouts._FIELDS.values() for name in names]
    needed += layouts._ADDRESSES.values()
    for name in FakeJvm(version).fields.keys() & set(needed) - {"CodeBlob._code_offset"}:
        jvm = FakeJvm(version)
        del jvm.fields[name]
        message = refused(jvm)
        assert name in message
        assert RELEASES[version] in message


@pytest.mark.parametrize(("version", "name"), [(17, "nmethod._metadata_offset")])
def test_fields_that_do_not_make_a_whole(version: int, name: str) -> None:
    jvm = FakeJvm(version)
    del jvm.fields[name]
    assert name in refused(jvm)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (25, "nmethod._immutable_data_size"),
        (25, "CodeBlob._mutable_data"),
        (25, "ConstantPool._source_file_name_index"),
        (17, "nmethod._dependencies_offset"),
        (11, "InstanceKlass._source_file_name_index"),
    ],
)
def test_data_of_some_versions_that_is_missing(version: int, name: str) -> None:
    jvm = FakeJvm(version)
    del jvm.fields[name]
    assert "no field" in refused(jvm)


def test_offsets_instead_of_pointers_need_their_other_fields() -> None:
    jvm = FakeJvm(17)
    jvm.fields["CodeBlob._code_offset"] = (36, 0)
    assert "nmethod._immutable_data" in refused(jvm)


@pytest.mark.parametrize("release", ["1.8.0_392", "26+1", "", "banana"])
def test_another_version(release: str) -> None:
    assert "JDK 11 to 25" in refused(FakeJvm(17, release))


def test_an_offset_that_no_class_has() -> None:
    jvm = FakeJvm(17)
    jvm.fields["CodeBlob._frame_size"] = (4097, 0)
    assert "CodeBlob._frame_size is 4097" in refused(jvm)


def test_a_size_that_is_missing_or_too_large() -> None:
    jvm = FakeJvm(17)
    jvm.types["ConstMethod"] = 1 << 40
    assert "ConstMethod" in refused(jvm)
    del jvm.types["ConstMethod"]
    assert "ConstMethod" in refused(jvm)


def test_frames_of_the_interpreter_in_another_form() -> None:
    jvm = FakeJvm(21)
    jvm.constants["frame::interpreter_frame_sender_sp_offset"] = -2
    assert "interpreter_frame_sender_sp_offset is -2, not -1" in refused(jvm)


def test_no_line_numbers() -> None:
    jvm = FakeJvm(25)
    del jvm.constants["ConstMethodFlags::_misc_has_linenumber_table"]
    assert "linenumber" in refused(jvm)


@pytest.mark.parametrize("word", [0, 121, 1 << 40])
def test_a_size_of_entries_that_leads_nowhere(word: int) -> None:
    jvm = FakeJvm().describe()
    jvm.put(jvm.symbols["gHotSpotVMStructEntryArrayStride"], word)
    with pytest.raises(LayoutError, match="cannot be read"):
        read(jvm)


@pytest.mark.parametrize("table", ["gHotSpotVMStructs", "gHotSpotVMTypes"])
def test_a_table_without_an_end_is_left(table: str) -> None:
    """Each entry is the next one, too: a stride of one byte over a memory of ones."""
    jvm = FakeJvm().describe()
    entry = table[:-1].replace("Structs", "Struct") + "EntryArrayStride"
    jvm.put(jvm.symbols[entry], 1)
    jvm.put(jvm.symbols[table], BASE + 0x100000)
    jvm.put_bytes(BASE + 0x100000, b"\1" * 0x100000)
    with pytest.raises(LayoutError, match="cannot be read"):
        read(jvm)
    assert jvm.reads < 100_000


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 200))
def test_damaged_tables_end_in_a_layout_or_a_refusal(seed: int, changes: int) -> None:
    jvm = FakeJvm().describe()
    chance = random.Random(seed)
    for _ in range(changes):
        at = chance.randrange(0, 0x20000 >> 3) << 3
        value = chance.choice(
            [0, 1, 1 << 63, chance.getrandbits(64), BASE + chance.randrange(SIZE)]
        )
        struct.pack_into("<Q", jvm.memory, at, value)
    try:
        layout = read(jvm).layout
    except LayoutError:
        return
    assert max(layout) <= 4096
