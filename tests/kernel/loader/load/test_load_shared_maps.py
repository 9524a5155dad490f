"""Maps that a load did not make: given to it, or found pinned; what it leaves as it is."""

from __future__ import annotations

import errno
import stat
from contextlib import suppress
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import KernelError, LinkError, NotSupportedError
from purebpf.spec import MapSpec, ObjectSpec
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Call, Interposer, failing

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"
TAIL = purebpf.read_object(DATA / "load_tail.bpf.o")
COUNTER = purebpf.read_object(DATA / "load_counter.bpf.o")


def pinned(spec: ObjectSpec, name: str) -> ObjectSpec:
    """`spec`, with the map of that name to be pinned by name."""
    return spec._replace(maps={**spec.maps, name: spec.maps[name]._replace(pinning=1)})


def leaf_in(obj: purebpf.Object) -> int:
    """The id of the map in `tree`."""
    with obj.maps["tree"][1] as leaf:
        return leaf.info.id


def test_a_map_of_maps_that_is_given_keeps_what_is_in_it():
    with purebpf.load(TAIL) as first:
        own = first.maps["leaf"].info.id
        with purebpf.load(TAIL, maps={"tree": first.maps["tree"]}) as second:
            assert second.maps["leaf"].info.id != own
            assert leaf_in(second) == own
        assert leaf_in(first) == own


def test_a_map_of_maps_that_is_given_needs_none_of_the_objects_own():
    with purebpf.load(TAIL) as first:
        without = TAIL.leave_out("leaf")
        with purebpf.load(without, maps={"tree": first.maps["tree"]}) as second:
            assert leaf_in(second) == first.maps["leaf"].info.id
        with pytest.raises(LinkError, match="map tree should hold this map"):
            purebpf.load(without)


def test_a_map_of_maps_found_pinned_keeps_what_is_in_it(bpffs: Path):
    spec = pinned(TAIL, "tree")
    with purebpf.load(spec, pin_path=bpffs) as first:
        own = first.maps["leaf"].info.id
        assert leaf_in(first) == own
        with purebpf.load(spec, pin_path=bpffs):
            assert leaf_in(first) == own


def test_a_map_of_maps_is_filled_before_others_can_find_it(bpffs: Path):
    with replaced(Interposer()) as substitute, purebpf.load(pinned(TAIL, "tree"), pin_path=bpffs):
        pass
    pin = substitute.commands.index("BPF_OBJ_PIN")
    created = len(substitute.commands) - substitute.commands[::-1].index("BPF_MAP_CREATE")
    assert "BPF_MAP_UPDATE_ELEM" in substitute.commands[min(created, pin) : pin]


def test_maps_are_listed_as_the_object_has_them():
    listed = ["tree", *(name for name in TAIL.maps if name != "tree")]
    spec = TAIL._replace(maps={name: TAIL.maps[name] for name in listed})
    with purebpf.load(spec) as obj:
        assert list(obj.maps) == listed
        assert leaf_in(obj) == obj.maps["leaf"].info.id


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_RINGBUF, t.BPF_MAP_TYPE_PERF_EVENT_ARRAY])
def test_a_ring_that_says_what_its_records_are_can_be_given(kind):
    events = MapSpec("events", kind, 0, 16, 4096)
    spec = COUNTER._replace(maps={**COUNTER.maps, "events": events})
    with (
        purebpf.load(spec) as first,
        purebpf.load(spec, maps={"events": first.maps["events"]}) as second,
    ):
        assert second.maps["events"].info.id == first.maps["events"].info.id


@pytest.fixture(params=["mapped", "unmapped"])
def constants(request: pytest.FixtureRequest) -> ObjectSpec:
    """An object with constants that are memory, or, as before Linux 5.5, are not."""
    spec = COUNTER.set(target_pid=41)
    rodata = spec.maps[".rodata"]
    flags = rodata.flags if request.param == "mapped" else rodata.flags & ~(1 << 10)
    return spec._replace(maps={**spec.maps, ".rodata": rodata._replace(flags=flags)})


def test_constants_that_are_given_can_be_read_and_not_written(constants: ObjectSpec):
    with (
        purebpf.load(constants) as first,
        purebpf.load(COUNTER, maps={".rodata": first.maps[".rodata"]}) as second,
    ):
        assert second.globals["target_pid"] == 41
        with pytest.raises(NotSupportedError, match="'target_pid': it is constant"):
            second.globals["target_pid"] = 42
        assert second.globals["target_pid"] == 41
        second.globals["step"] = 7
        assert (first.globals["step"], second.globals["step"]) == (1, 7)


def test_constants_that_were_found_elsewhere_can_be_read_and_not_written(bpffs: Path):
    with purebpf.load(COUNTER.set(target_pid=41)) as first:
        first.maps[".rodata"].pin(bpffs / "constants")
    with (
        purebpf.Map.open(bpffs / "constants") as found,
        purebpf.load(COUNTER, maps={".rodata": found}) as second,
    ):
        assert second.globals["target_pid"] == 41
        with pytest.raises(NotSupportedError, match="frozen or read-only"):
            second.globals["target_pid"] = 42


def test_the_last_directory_of_the_pins_is_made(bpffs: Path):
    place = bpffs / "new"
    with purebpf.load(pinned(COUNTER, "calls"), pin_path=place) as first:
        assert [each.name for each in place.iterdir()] == ["calls"]
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        with purebpf.load(pinned(COUNTER, "calls"), pin_path=place) as second:
            assert second.maps["calls"].info.id == first.maps["calls"].info.id


def test_only_the_last_directory_is_made(bpffs: Path):
    place = bpffs / "new" / "newer"
    with pytest.raises(KernelError, match="mkdir failed with ENOENT") as caught:
        purebpf.load(pinned(COUNTER, "calls"), pin_path=place)
    assert caught.value.errno == errno.ENOENT
    assert not place.parent.exists()


def test_a_refused_map_makes_no_directory(bpffs: Path):
    with replaced(failing(2, errno.ENOMEM)), pytest.raises(KernelError):
        purebpf.load(pinned(COUNTER, "calls"), pin_path=bpffs / "new")
    assert not (bpffs / "new").exists()


REFUSED = purebpf.read_object(DATA / "load_refused.bpf.o")


@pytest.fixture
def place(bpffs: Path) -> Path:
    """An empty directory for pins."""
    (bpffs / "pins").mkdir()
    return bpffs / "pins"


def test_a_refused_load_unpins_the_maps_that_it_pinned(place: Path):
    spec = pinned(REFUSED, "table")
    with pytest.raises(purebpf.VerifierError):
        purebpf.load(spec.only("null_pointer"), pin_path=place)
    assert not list(place.iterdir())
    with purebpf.load(spec.only("accepted").resize(table=32), pin_path=place):
        assert [each.name for each in place.iterdir()] == ["table"]
    assert [each.name for each in place.iterdir()] == ["table"], "closing leaves pins"


def test_a_refused_load_leaves_the_pins_of_others(place: Path):
    spec = pinned(REFUSED, "table")
    with purebpf.load(spec.only("accepted"), pin_path=place) as first:
        with pytest.raises(purebpf.VerifierError):
            purebpf.load(spec.only("null_pointer"), pin_path=place)
        with purebpf.Map.open(place / "table") as found:
            assert found.info.id == first.maps["table"].info.id


def test_a_refused_load_leaves_what_took_the_place_of_its_pin(place: Path):
    other = MapSpec("other", t.BPF_MAP_TYPE_ARRAY, 4, 8, 1)

    def decide(call: Call) -> int | None:
        if call.command == "BPF_PROG_LOAD":
            (place / "table").unlink(missing_ok=True)
            with suppress(KernelError):
                made.pin(place / "table")
        return None

    with purebpf.Map.create(other) as made:
        with replaced(Interposer(decide)), pytest.raises(purebpf.VerifierError):
            purebpf.load(pinned(REFUSED, "table").only("null_pointer"), pin_path=place)
        with purebpf.Map.open(place / "table") as found:
            assert found.info.id == made.info.id


def test_a_failed_map_unpins_those_before_it(place: Path):
    spec = pinned(pinned(TAIL, "leaf"), "tree")
    pins: list[int] = []

    def second_pin(call: Call) -> int | None:
        if call.command != "BPF_OBJ_PIN":
            return None
        pins.append(call.number)
        return errno.ENOMEM if len(pins) == 2 else None

    with replaced(Interposer(second_pin)), pytest.raises(KernelError, match="ENOMEM"):
        purebpf.load(spec, pin_path=place)
    assert len(pins) == 2
    assert not list(place.iterdir())


@pytest.mark.parametrize("pinning", [2, 7])
def test_a_pinning_that_is_not_known_is_refused(pinning: int, place: Path):
    calls = COUNTER.maps["calls"]._replace(pinning=pinning)
    spec = COUNTER._replace(maps={**COUNTER.maps, "calls": calls})
    with pytest.raises(NotSupportedError, match=f"map 'calls': pinning is {pinning}; known: 0"):
        purebpf.load(spec, pin_path=place)
    assert not list(place.iterdir())
