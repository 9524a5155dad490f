"""Maps of references to something else: maps, programs, events, sockets, devices, tasks."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator

import pytest

from purebpf.abi.bpf import BPF_F_NO_PREALLOC
from purebpf.abi.bpf import bpf_map_type as t
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host import cpus
from purebpf.loader.maps import map_traits
from purebpf.loader.maps.map import Map
from purebpf.loader.perf.perf_event import PerfEvent
from purebpf.spec import MapSpec
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor
from tests.kernel.map_specs import BTF, U32, U64, VALUE, spec

pytestmark = pytest.mark.needs("bpf")

RETURN_0 = struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
SOCKET_FILTER, TRACEPOINT = 1, 5


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_HASH_OF_MAPS, t.BPF_MAP_TYPE_ARRAY_OF_MAPS])
def test_maps_of_maps_take_a_map_and_give_it_back(kind, btf_fd):
    inner = spec(t.BPF_MAP_TYPE_HASH, 4, 8, 4, key_type_id=U32, value_type_id=U64)
    outer = spec(kind, 4, 4, 3, inner=inner, key_type_id=U32)
    with (
        Map.create(outer, btf=BTF, btf_fd=btf_fd) as m,
        Map.create(inner, btf=BTF, btf_fd=btf_fd) as first,
        Map.create(inner) as untyped,
    ):
        first[1] = 10**12
        untyped[b"\1\0\0\0"] = struct.pack("=Q", 5)
        m[0], m[2] = first, untyped
        with m[0] as found:
            assert found.info.id == first.info.id
            assert found[1] == 10**12
        with m[2] as found:
            assert found[1] == 5  # typed by what the outer map's declaration says
        opened = dict(m.items())
        assert {key: each.info.id for key, each in opened.items()} == {
            0: first.info.id,
            2: untyped.info.id,
        }
        for each in opened.values():
            each.close()
        assert sorted(m) == [0, 2]
        assert len(m) == 2
        del m[0]
        assert list(m) == [2]
        other = Map.create(spec(t.BPF_MAP_TYPE_HASH, 4, 16))
        with other, pytest.raises(KernelError, match=r"EINVAL.*maps of one type, with keys and"):
            m[1] = other


OUTER = [t.BPF_MAP_TYPE_HASH_OF_MAPS, t.BPF_MAP_TYPE_ARRAY_OF_MAPS]
INNER = spec(t.BPF_MAP_TYPE_HASH, 4, 8, 4, key_type_id=U32, value_type_id=U64)


@pytest.fixture(params=OUTER, ids=map_traits.type_name)
def outer(request, btf_fd) -> Iterator[Map]:
    """Holds the only descriptors of two maps."""
    made = spec(request.param, 4, 4, 3, inner=INNER, key_type_id=U32)
    with Map.create(made, btf=BTF, btf_fd=btf_fd) as m:
        for index in (0, 2):
            with Map.create(INNER, btf=BTF, btf_fd=btf_fd) as inner:
                inner[1] = index
                m[index] = inner
        yield m


def test_a_map_that_only_a_map_of_maps_holds_is_taken_out(outer):
    with outer.pop(2) as found:
        assert found[1] == 2
    assert list(outer) == [0]
    assert outer.pop(2, None) is None
    with pytest.raises(KeyError):
        outer.pop(2)
    with pytest.raises(NotSupportedError, match="without a key"):
        outer.pop()
    ((key, found),) = outer.drain()
    with found:
        assert (key, found[1]) == (0, 0)
    assert not outer
    assert outer.drain() == []


def test_a_map_of_maps_that_is_frozen_keeps_what_it_has(outer):
    outer.freeze()
    with pytest.raises(KernelError) as caught:
        outer.drain()
    assert caught.value.errno == errno.EPERM
    assert sorted(outer) == [0, 2]


def test_a_program_array_takes_programs_and_shows_their_ids():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_PROG_ARRAY)) as m,
        bpf.prog_load(SOCKET_FILTER, RETURN_0, "GPL") as program,
        bpf.prog_load(TRACEPOINT, RETURN_0, "GPL") as other,
    ):
        m[3] = program
        m[5] = program.fileno()
        assert list(m) == [3, 5]
        assert m[3] == m[5] > 0
        assert dict(m.items()) == {3: m[3], 5: m[3]}
        assert m.get(4) is None
        with pytest.raises(KernelError) as caught:
            m[4] = other  # of another type than the first
        assert caught.value.errno == errno.EINVAL
        m.clear()
        assert not m


@pytest.mark.needs("perf_event")
def test_a_perf_event_array_takes_events_and_shows_nothing():
    with (
        Map.create(spec(t.BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 40, 0)) as m,
        PerfEvent.sampling(frequency=99, cpu=0) as event,
    ):
        assert m.max_entries == cpus.possible()[-1] + 1
        m[0] = event
        with pytest.raises(KernelError, match="PERF_EVENT_ARRAY does not support this"):
            m[0]
        del m[0]
        with pytest.raises(KeyError):
            del m[0]


def cgroup_directory() -> Descriptor:
    root = next(path for path, kind in proc.mounts() if kind == "cgroup2")
    return Descriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY))


def test_a_cgroup_array_takes_directories():
    with Map.create(spec(t.BPF_MAP_TYPE_CGROUP_ARRAY)) as m, cgroup_directory() as cgroup:
        m[1] = cgroup
        del m[1]


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    with client, accepted:
        yield client, accepted


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_SOCKMAP, t.BPF_MAP_TYPE_SOCKHASH])
def test_socket_maps_take_sockets_and_show_their_cookies(kind, connection):
    so_cookie = 57
    client, accepted = connection
    with Map.create(spec(kind, 4, 8)) as m:
        keys = [0, 1] if kind == t.BPF_MAP_TYPE_SOCKMAP else [b"key0", b"key1"]
        m[keys[0]], m[keys[1]] = client, accepted.fileno()
        cookie = client.getsockopt(socket.SOL_SOCKET, so_cookie, 8)
        assert m[keys[0]] == int.from_bytes(cookie, "little")
        assert sorted(m) == keys
        del m[keys[0]]
        assert list(m) == [keys[1]]


@pytest.mark.parametrize("kind", [t.BPF_MAP_TYPE_DEVMAP, t.BPF_MAP_TYPE_DEVMAP_HASH])
def test_device_maps_hold_interface_numbers(kind):
    loopback = socket.if_nametoindex("lo")
    with Map.create(spec(kind)) as m:
        key = 2 if kind == t.BPF_MAP_TYPE_DEVMAP else b"key2"
        m[key] = loopback
        assert dict(m.items()) == {key: loopback}


def test_a_cpu_map_holds_queue_sizes():
    with Map.create(spec(t.BPF_MAP_TYPE_CPUMAP, entries=cpus.possible()[-1] + 1)) as m:
        m[0] = 192
        assert m[0] == 192
        assert list(m) == [0]
        del m[0]


def test_a_reuseport_array_takes_sockets_that_share_a_port():
    with Map.create(spec(t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, 4, 8)) as m, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        m[2] = sock
        assert list(m) == [2]


def storage(kind: int) -> MapSpec:
    return spec(kind, 4, 16, 0, flags=BPF_F_NO_PREALLOC, key_type_id=U32, value_type_id=VALUE)


def _pidfd() -> Descriptor:
    return Descriptor(os.pidfd_open(os.getpid()))


def _socket() -> Descriptor:
    return Descriptor(socket.socket().detach())


def _file() -> Descriptor:
    return Descriptor(os.memfd_create("file"))


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        pytest.param(
            *(t.BPF_MAP_TYPE_TASK_STORAGE, _pidfd), marks=pytest.mark.needs("task_storage")
        ),
        (t.BPF_MAP_TYPE_SK_STORAGE, _socket),
        pytest.param(
            *(t.BPF_MAP_TYPE_INODE_STORAGE, _file), marks=pytest.mark.needs("inode_storage")
        ),
        pytest.param(
            *(t.BPF_MAP_TYPE_CGRP_STORAGE, cgroup_directory),
            marks=pytest.mark.needs("cgroup_storage", "cgroup2"),
        ),
    ],
    ids=lambda value: map_traits.type_name(value) if isinstance(value, int) else "",
)
def test_local_storage_belongs_to_what_the_descriptor_is(kind, owner, btf_fd):
    with Map.create(storage(kind), btf=BTF, btf_fd=btf_fd) as m, owner() as descriptor:
        assert descriptor not in m
        m[descriptor] = (10**10, 3)
        assert (m[descriptor].total, m[descriptor].last) == (10**10, 3)
        with pytest.raises(KernelError, match="listing map"):
            list(m)
        del m[descriptor]
        assert descriptor not in m
        closed = struct.pack("=i", -1)
        for call in (m.__getitem__, m.__delitem__, lambda key: m.put(key, (0, 0))):
            with pytest.raises(KernelError, match=r"EBADF.* not an open descriptor"):
                call(closed)


@pytest.mark.needs("task_storage")
def test_the_storage_of_a_task_is_found_by_its_id(btf_fd):
    with Map.create(storage(t.BPF_MAP_TYPE_TASK_STORAGE), btf=BTF, btf_fd=btf_fd) as m:
        pid = os.getpid()
        before = len(os.listdir("/proc/self/fd"))
        assert pid not in m
        m[pid] = (5, 6)
        assert m.get(pid) == m[pid] == (5, 6)
        with Descriptor(os.pidfd_open(pid)) as pidfd:
            assert m[pidfd] == (5, 6)
        m.update({pid: (7, 8)})
        assert m[pid] == (7, 8)
        del m[pid]
        assert m.get(pid) is None
        assert len(os.listdir("/proc/self/fd")) == before
        gone = subprocess.Popen(["true"])
        gone.wait()
        for call in (m.get, m.__getitem__, m.__contains__, lambda key: m.put(key, (0, 0))):
            with pytest.raises(KernelError, match=r"ESRCH.* no such process"):
                call(gone.pid)


@pytest.mark.needs("task_storage")
def test_the_storage_of_a_thread_is_found_by_its_id(btf_fd):
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with Map.create(storage(t.BPF_MAP_TYPE_TASK_STORAGE), btf=BTF, btf_fd=btf_fd) as m:
            if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 9):
                with pytest.raises(KernelError, match=r"Linux 6\.9"):
                    m[thread.native_id] = (5, 6)
            else:
                m[thread.native_id] = (5, 6)
                assert m[thread.native_id] == (5, 6)
                assert os.getpid() not in m
    finally:
        done.set()
        thread.join()


@pytest.mark.needs("inode_storage")
def test_the_storage_of_a_file_is_found_by_its_path(btf_fd, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with Map.create(storage(t.BPF_MAP_TYPE_INODE_STORAGE), btf=BTF, btf_fd=btf_fd) as m:
        m[path] = (5, 6)
        with path.open() as file:
            assert m[str(path)] == m[file] == (5, 6)
        with pytest.raises(KernelError, match=r"missing: open\(2\) failed with ENOENT"):
            m[tmp_path / "missing"]


@pytest.mark.needs("cgroup_storage", "cgroup2")
def test_the_storage_of_a_cgroup_is_found_by_its_path(btf_fd):
    with (
        Map.create(storage(t.BPF_MAP_TYPE_CGRP_STORAGE), btf=BTF, btf_fd=btf_fd) as m,
        cgroup_directory() as directory,
    ):
        path = os.readlink(f"/proc/self/fd/{directory.fileno()}")
        m[path] = (5, 6)
        assert m[directory] == (5, 6)
        del m[path]
        assert directory not in m


@pytest.mark.parametrize(
    ("kind", "size", "value", "said"),
    [
        (t.BPF_MAP_TYPE_PROG_ARRAY, 4, "program", "EINVAL.*takes programs of one type"),
        (t.BPF_MAP_TYPE_PROG_ARRAY, 4, -1, "EBADF.*not an open descriptor"),
        (t.BPF_MAP_TYPE_SOCKMAP, 8, "socket", "connected or listening"),
        (
            t.BPF_MAP_TYPE_SOCKMAP,
            8,
            "file",
            "ENOTSOCK.*descriptor of what the map holds",
        ),
        (t.BPF_MAP_TYPE_DEVMAP, 4, 1 << 30, "EINVAL.*takes interfaces of this network namespace"),
        (t.BPF_MAP_TYPE_XSKMAP, 4, "socket", "takes AF_XDP sockets"),
        (
            t.BPF_MAP_TYPE_REUSEPORT_SOCKARRAY,
            8,
            "socket",
            "EINVAL.*bound sockets, with SO_REUSEP",
        ),
    ],
)
def test_what_a_map_does_not_hold_is_refused_with_what_it_holds(kind, size, value, said):
    with (
        Map.create(spec(kind, 4, size)) as m,
        socket.socket() as unconnected,
        open(__file__) as file,
        bpf.prog_load(SOCKET_FILTER, RETURN_0, "GPL") as program,
        bpf.prog_load(TRACEPOINT, RETURN_0, "GPL") as other,
    ):
        values = {"program": other, "socket": unconnected, "file": file}
        if value == "program":
            m[0] = program
        with pytest.raises(KernelError, match=said):
            m[1] = values.get(value, value)


def test_a_socket_map_too_small_for_cookies_says_so(connection):
    with Map.create(spec(t.BPF_MAP_TYPE_SOCKMAP, 4, 4)) as m:
        m[0] = connection[0]
        with pytest.raises(KernelError, match=r"ENOSPC.*its cookie, of 8 bytes.*__u64"):
            m.get(0)
