"""Creating with less, pinning, sharing, freezing; and failures at every call."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.abi.bpf import BPF_F_MMAPABLE, BPF_F_NUMA_NODE, BPF_F_RDONLY, BPF_F_RDONLY_PROG
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import KernelError, LinkError, NotSupportedError
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.backend import replaced
from purebpf.syscall.descriptor import Descriptor
from tests.support import probes
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.host.backends import Call, Interposer, failing
from tests.support.host.privilege import reachable

pytestmark = pytest.mark.needs("bpf")

BUILDER = BtfBuilder()
U32 = BUILDER.int("unsigned int", 4)
BTF = BUILDER.btf()
COUNTS = MapSpec("counts", t.BPF_MAP_TYPE_HASH, 4, 4, 8, key_type_id=U32, value_type_id=U32)
ARRAY = MapSpec("array", t.BPF_MAP_TYPE_ARRAY, 4, 8, 2)
DATA = MapSpec(
    ".rodata",
    t.BPF_MAP_TYPE_ARRAY,
    4,
    12,
    1,
    flags=BPF_F_MMAPABLE | BPF_F_RDONLY_PROG,
    section=".rodata",
    contents=b"twelve bytes",
    frozen=True,
)


# Creation


@pytest.mark.parametrize("error", [errno.EINVAL, errno.E2BIG, 524])
def test_without_btf_in_the_kernel_the_map_is_typed_all_the_same(error):
    def decide(call: Call) -> int | None:
        refused = call.command == "BPF_MAP_CREATE" and call.field("map_create", "btf_fd")
        return error if refused else None

    with (
        bpf.btf_load(BTF.data) as btf,
        replaced(Interposer(decide)) as substitute,
        Map.create(COUNTS, btf=BTF, btf_fd=btf.fileno()) as m,
    ):
        m[1] = 2
        assert dict(m.items()) == {1: 2}
        assert m.info.btf_id == 0
        assert m.info.name == "counts"
    assert substitute.commands.count("BPF_MAP_CREATE") == 2


def test_without_names_in_the_kernel_the_map_keeps_its_own():
    def decide(call: Call) -> int | None:
        named = call.command == "BPF_MAP_CREATE" and any(call.field("map_create", "map_name"))
        return errno.EINVAL if named else None

    with replaced(Interposer(decide)), Map.create(COUNTS) as m:
        assert (m.name, m.info.name) == ("counts", "")


def test_without_mmapable_arrays_a_data_section_is_made_without():
    def decide(call: Call) -> int | None:
        if call.command != "BPF_MAP_CREATE":
            return None
        return errno.EINVAL if call.field("map_create", "map_flags") & BPF_F_MMAPABLE else None

    with replaced(Interposer(decide)):
        with Map.create(DATA, object_name="old") as m:
            assert m.info.flags == BPF_F_RDONLY_PROG
        with pytest.raises(
            KernelError
        ):  # a caller that asks for memory does not get something else
            Map.create(MapSpec("m", t.BPF_MAP_TYPE_ARRAY, 4, 4, 1, flags=BPF_F_MMAPABLE))


@pytest.mark.parametrize("error", [errno.ENOMEM, errno.EMFILE])
def test_what_no_omission_cures_is_not_tried_again(error):
    with replaced(failing(1, error)) as substitute:
        with pytest.raises(KernelError) as caught:
            Map.create(COUNTS)
        assert caught.value.errno == error
        assert len(substitute.calls) == 1


def test_memlock_is_raised_once_when_the_kernel_says_eperm(monkeypatch):
    monkeypatch.setattr("purebpf.loader.host.memlock.raise_memlock", lambda: True)
    with replaced(failing(1, errno.EPERM)) as substitute, Map.create(COUNTS):
        assert substitute.commands[:2] == ["BPF_MAP_CREATE"] * 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"type": t.BPF_MAP_TYPE_ARRAY, "key_size": 8}, "its key must be a 4-byte index"),
        ({"type": t.BPF_MAP_TYPE_QUEUE}, "a QUEUE does not have a key"),
        ({"type": t.BPF_MAP_TYPE_RINGBUF, "max_entries": 0}, "size in bytes, and it is 0"),
        ({"type": t.BPF_MAP_TYPE_LPM_TRIE, "key_size": 8}, "set BPF_F_NO_PREALLOC"),
        ({"max_entries": 0}, "max_entries is 0. spec.resize(m=entries)"),
        ({"flags": 1 << 30}, "a size or flag does not suit HASH"),
        ({"type": 4711}, "does not suit type 4711, or this kernel does not support such maps"),
        ({"value_size": 1 << 31}, "E2BIG. its elements alone take 17179869216 bytes"),
        ({"name": "outer.inner", "value_size": 1 << 31}, "than the kernel's largest allocation"),
        ({"value_size": 1 << 31}, "make it smaller: spec.resize(m=fewer_entries)"),
    ],
    ids=str,
)
def test_a_refusal_names_the_values_and_the_rule(wrong, said):
    fields = {"name": "m", "type": t.BPF_MAP_TYPE_HASH, "key_size": 4, "value_size": 4}
    with pytest.raises(KernelError) as caught:
        Map.create(MapSpec(**fields | {"max_entries": 8} | wrong))
    text = str(caught.value)
    assert said in text
    assert text.startswith(f"map '{wrong.get('name', 'm')}' (")
    assert "bpf(BPF_MAP_CREATE) failed with" in text


def test_a_map_of_maps_needs_a_template():
    with pytest.raises(LinkError, match="outer: a map-in-map needs a template"):
        Map.create(MapSpec("outer", t.BPF_MAP_TYPE_HASH_OF_MAPS, 4, 4, 1))


def test_a_numa_node_is_asked_for_and_counts_with_its_flag_only():
    on_node = MapSpec("m", t.BPF_MAP_TYPE_HASH, 4, 4, 8, flags=BPF_F_NUMA_NODE, numa_node=0)
    with Map.create(on_node) as m:
        assert m.info.flags == BPF_F_NUMA_NODE
    nowhere = on_node._replace(numa_node=4711)
    with pytest.raises(KernelError):
        Map.create(nowhere)
    with Map.create(nowhere._replace(flags=0)) as m:
        assert m.info.flags == 0
    with Map.create(MapSpec("m", t.BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, numa_node=0)):
        pass


def test_a_data_section_is_filled_named_and_frozen():
    with Map.create(DATA, object_name="opensnoop") as m:
        assert m.info.name == "opensnoo.rodata"
        assert m.name == ".rodata"
        assert m[0] == b"twelve bytes"
        with pytest.raises(KernelError, match="frozen") as caught:
            m[0] = b"other values"
        assert caught.value.errno == errno.EPERM
        m.freeze()  # again is harmless
        with m.mmap(writable=False) as memory:
            assert bytes(memory.view[:12]) == b"twelve bytes"
        with pytest.raises(KernelError, match="mmap failed with EPERM"):
            m.mmap()


def test_a_map_with_writable_memory_cannot_be_frozen():
    spec = MapSpec("m", t.BPF_MAP_TYPE_ARRAY, 4, 8, 1, flags=BPF_F_MMAPABLE)
    with Map.create(spec) as m, m.mmap() as memory:
        with pytest.raises(KernelError, match="freezing map 'm'") as caught:
            m.freeze()
        assert caught.value.errno == errno.EBUSY
        assert not m.frozen
        memory.close()
        m.freeze()


def outcome(make: Callable[[], Map]) -> int:
    """0 or the errno."""
    try:
        make().close()
    except KernelError as error:
        return error.errno or -1
    return 0


FAULTS = {
    "hash": lambda: Map.create(COUNTS),
    "data": lambda: Map.create(DATA),
    "of maps": lambda: Map.create(
        MapSpec("outer", t.BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 2, inner=ARRAY)
    ),
}


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EPERM, errno.ENOMEM, 524])
@pytest.mark.parametrize("name", FAULTS)
def test_whichever_call_fails_the_map_is_whole_or_gone(name, error):
    with replaced(Interposer()) as substitute, FAULTS[name]():
        needed = len(substitute.calls)
    before = probes.descriptors()
    outcomes = []
    for number in range(1, needed + 1):
        with replaced(failing(number, error)):
            outcomes.append(outcome(FAULTS[name]))
        assert probes.descriptors() == before
    assert set(outcomes) <= {0, error}
    assert error in outcomes


def test_a_map_that_cannot_be_read_is_closed_while_the_error_is_kept(monkeypatch):
    def no_descriptors() -> tuple[int, ...]:
        raise KernelError("read", errno.EMFILE, "/sys/devices/system/cpu/possible")

    before = probes.descriptors()
    monkeypatch.setattr("purebpf.loader.host.cpus.possible", no_descriptors)
    per_cpu = MapSpec("m", t.BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1)
    with pytest.raises(KernelError) as caught:
        Map.create(per_cpu)
    assert probes.descriptors() == before, caught.value


def test_a_descriptor_that_is_not_a_map_is_refused_and_stays_the_callers():
    with Descriptor(os.open("/dev/null", os.O_RDONLY)) as null:
        with pytest.raises(KernelError) as caught:
            Map.from_fd(null.fileno())
        assert caught.value.errno in (errno.EINVAL, errno.EBADF)
        os.fstat(null.fileno())


# Pins


def test_a_pinned_map_is_found_again(bpffs: Path):
    with bpf.btf_load(BTF.data) as btf, Map.create(COUNTS, btf=BTF, btf_fd=btf.fileno()) as m:
        m[1] = 10
        m.pin(bpffs / "counts")
        made = m.info.id
    with Map.open(bpffs / "counts") as m:
        assert m.info.id == made
        assert dict(m.items()) == {1: 10}
    with Map.open(bpffs / "counts", flags=BPF_F_RDONLY) as m:
        assert m[1] == 10
        with pytest.raises(KernelError, match="opened without this access"):
            m[1] = 11


def test_pin_errors_say_what_is_there(bpffs: Path, tmp_path: Path):
    with Map.create(COUNTS) as m:
        m.pin(bpffs / "counts")
        with pytest.raises(KernelError, match=r"already exists\. rm ") as caught:
            m.pin(bpffs / "counts")
        assert caught.value.errno == errno.EEXIST
        with pytest.raises(KernelError, match="mount -t bpf -o mode=0700 bpf /sys/fs/bpf"):
            m.pin("/tmp/purebpf-not-a-bpf-file-system")
        with pytest.raises(KernelError, match="nothing is pinned there") as caught:
            Map.open(bpffs / "none")
        assert caught.value.errno == errno.ENOENT


def test_a_pin_in_no_bpf_file_system_says_what_to_mount():
    with Map.create(COUNTS) as m:
        with pytest.raises(
            KernelError, match="mount -t bpf -o mode=0700 bpf /sys/fs/bpf"
        ) as caught:
            m.pin("/proc/purebpf-nothing-is-made-here")
        assert caught.value.errno == errno.ENOENT
        with pytest.raises(KernelError, match="directory /sys/no/such") as caught:
            m.pin("/sys/no/such/counts")
        assert caught.value.errno == errno.ENOENT


def test_what_is_pinned_may_be_no_map(bpffs: Path):
    with bpf.prog_load(1, bytes.fromhex("b7000000000000009500000000000000"), "GPL") as program:
        bpf.obj_pin(program.fileno(), str(bpffs / "program"))
        with pytest.raises(KernelError, match="it is a bpf-prog, not a map"):
            Map.from_fd(program.fileno())
    with pytest.raises(KernelError, match="it is a bpf-prog, not a map") as caught:
        Map.open(bpffs / "program")
    assert caught.value.errno == errno.EINVAL


def test_a_shared_map_is_made_once_and_compared_afterwards(bpffs: Path):
    with Map.shared(COUNTS, bpffs / "counts", btf=BTF) as first:
        first[5] = 55
        with Map.shared(COUNTS, bpffs / "counts", btf=BTF) as second:
            assert second.info.id == first.info.id
            assert second[5] == 55
    other = MapSpec("counts", t.BPF_MAP_TYPE_HASH, 4, 8, 8)
    with pytest.raises(NotSupportedError, match=r"value_size 4, not 8; remove it with: rm "):
        Map.shared(other, bpffs / "counts")


SHARED = MapSpec("counts", t.BPF_MAP_TYPE_HASH, 4, 8, 8, flags=1)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"type": t.BPF_MAP_TYPE_LRU_HASH, "flags": 0}, "type HASH, not LRU_HASH"),
        ({"key_size": 8}, "key_size 4, not 8"),
        ({"value_size": 16}, "value_size 8, not 16"),
        ({"max_entries": 9}, "max_entries 8, not 9"),
        ({"flags": 0}, "map_flags 0x1, not 0x0"),
        ({"map_extra": 1}, "map_extra 0, not 1"),
    ],
    ids=str,
)
def test_what_differs_from_a_shared_map_is_named(changed, words, bpffs: Path):
    with (
        Map.shared(SHARED, bpffs / "counts"),
        pytest.raises(NotSupportedError, match=f"sharing the map pinned at .*{words}"),
    ):
        Map.shared(SHARED._replace(**changed), bpffs / "counts")


@pytest.mark.parametrize(
    "spec",
    [
        SHARED._replace(numa_node=0),
        MapSpec("ring", t.BPF_MAP_TYPE_RINGBUF, 0, 0, 5000),
        MapSpec("cpus", t.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 0),
        MapSpec("more", t.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1024),
        MapSpec("devices", t.BPF_MAP_TYPE_DEVMAP, 4, 4, 8),
    ],
    ids=lambda spec: spec.name,
)
def test_what_the_kernel_or_purebpf_adds_is_not_a_difference(spec, bpffs: Path):
    with Map.shared(spec, bpffs / "map") as one, Map.shared(spec, bpffs / "map") as other:
        assert one.info.id == other.info.id


def test_everybody_who_shares_at_once_gets_the_same_map(bpffs: Path):
    start = threading.Barrier(4)
    ids = []

    def share() -> None:
        start.wait()
        with Map.shared(COUNTS, bpffs / "counts") as m:
            ids.append(m.info.id)

    threads = [threading.Thread(target=share) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert len(set(ids)) == 1


def test_who_loses_the_race_to_pin_takes_the_winners_map(bpffs: Path):
    pinned_since = [False]

    def not_yet(call: Call) -> int | None:
        """The first look finds nothing: the winner pins right after it."""
        if call.command == "BPF_OBJ_GET" and not pinned_since[0]:
            pinned_since[0] = True
            return errno.ENOENT
        return None

    with Map.create(COUNTS) as winner:
        winner.pin(bpffs / "counts")
        with (
            replaced(Interposer(not_yet)) as substitute,
            Map.shared(COUNTS, bpffs / "counts") as m,
        ):
            assert m.info.id == winner.info.id
    assert [call for call in substitute.commands if "OBJ_PIN" in call or call == "BPF_OBJ_GET"] == [
        "BPF_OBJ_GET",
        "BPF_OBJ_PIN",
        "BPF_OBJ_GET",
    ]


def test_a_pin_that_leads_nowhere_is_looked_at_a_few_times(bpffs: Path):
    (bpffs / "counts").symlink_to(bpffs / "nowhere")
    before = probes.descriptors()
    with (
        replaced(Interposer()) as substitute,
        pytest.raises(KernelError, match=r"rm .*counts") as caught,
    ):
        Map.shared(COUNTS, bpffs / "counts")
    assert caught.value.errno == errno.EEXIST
    assert substitute.commands.count("BPF_OBJ_GET") < 10
    assert probes.descriptors() == before


def test_an_unknown_id_is_enoent():
    with pytest.raises(KernelError, match=r"map 4294967295: .*no map has this ID"):
        Map.from_id(2**32 - 1)


# Permission

UNPRIVILEGED = [
    "setpriv",
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--reuid=65534",
    "--clear-groups",
]
WITHOUT_PRIVILEGE = """
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec
try:
    Map.create(MapSpec("m", 1, 4, 4, 8))
except PermissionError as error:
    raise SystemExit("PermissionError " + str(error))
except OSError as error:
    print(error)
"""


@pytest.mark.needs("setpriv", "mount_namespace")
def test_without_privilege_the_capability_and_the_command_are_named():
    run = subprocess.run(
        [*reachable(), *UNPRIVILEGED, sys.executable, "-c", WITHOUT_PRIVILEGE],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    )
    assert "bpf(BPF_MAP_CREATE) failed with EPERM. this process lacks CAP_BPF (CapEff 0x0)" in (
        run.stdout
    )
    assert f"run it as root: sudo {sys.executable} -c " in run.stdout
