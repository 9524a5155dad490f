"""Cgroup programs: each hook fired a known number of times, refused, ordered, and let go of."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_attach_type as at
from purebpf.abi.bpf import bpf_link_type
from purebpf.loader.attach._common.hooks import attach_type_of
from purebpf.loader.programs.link_info import CgroupLink
from purebpf.loader.programs.program import Program
from purebpf.syscall.backend import replaced
from purebpf.syscall.descriptor import Descriptor
from tests.support.host import capabilities, cgroups
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf", "cgroup2")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data" / "net_cgroup.bpf.o")
PRIME = 7
V4, V6 = ("127.0.0.1", 0), ("::1", 0)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    with cgroups.made() as path:
        yield path


def load(*names: str) -> purebpf.Object:
    spec = SPEC.only(*names)
    if "with_storage" not in names:  # programs may have one such map, and these not at all
        used = {name: each for name, each in spec.maps.items() if not name.startswith("created")}
        spec = spec._replace(maps=used)
    return purebpf.load(spec)


# What fires each hook once. The address says which family.


def family(address: tuple[str, int]) -> int:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def make_socket() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def bind(address: tuple[str, int]) -> None:
    with socket.socket(family(address), socket.SOCK_DGRAM) as sock:
        sock.bind(address)


def connect(address: tuple[str, int]) -> None:
    with socket.socket(family(address), socket.SOCK_DGRAM) as sock:
        sock.connect((address[0], 9))


def connected_names(address: tuple[str, int]) -> None:
    with socket.socket(family(address), socket.SOCK_DGRAM) as sock:
        sock.connect((address[0], 9))
        sock.getsockname()
        sock.getpeername()


def send_and_receive(address: tuple[str, int]) -> None:
    kind = family(address), socket.SOCK_DGRAM
    with socket.socket(*kind) as sender, socket.socket(*kind) as receiver:
        receiver.bind(address)
        sender.sendto(b"x", receiver.getsockname())
        receiver.recvfrom(1)


def connect_stream() -> None:
    with socket.create_server(V4) as server, socket.create_connection(server.getsockname()):
        pass


def unix(do: Callable[[socket.socket, socket.socket, str], object]) -> Callable[[], None]:
    def run() -> None:
        path = f"/tmp/purebpf-test-{os.getpid()}.socket"
        kind = socket.AF_UNIX, socket.SOCK_DGRAM
        with socket.socket(*kind) as one, socket.socket(*kind) as other:
            other.bind(path)
            try:
                do(one, other, path)
            finally:
                os.unlink(path)

    return run


def talk(one: socket.socket, other: socket.socket, path: str) -> None:
    one.sendto(b"x", path)
    other.recvfrom(1)


def names(one: socket.socket, other: socket.socket, path: str) -> None:
    one.connect(path)
    one.getpeername()
    other.getsockname()


def open_device() -> None:
    os.close(os.open("/dev/null", os.O_WRONLY))


def read_sysctl() -> None:
    file = os.open("/proc/sys/kernel/ostype", os.O_RDONLY)
    try:
        os.read(file, 64)
    finally:
        os.close(file)


def get_option() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def set_option() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 1)


UNIX = pytest.mark.needs("cgroup_unix")
HOOKS = [
    ("sock_create", make_socket, True),
    ("sock_release", make_socket, False),
    ("bind4", lambda: bind(V4), True),
    ("bind6", lambda: bind(V6), True),
    ("post_bind4", lambda: bind(V4), True),
    ("post_bind6", lambda: bind(V6), True),
    ("connect4", lambda: connect(V4), True),
    ("connect6", lambda: connect(V6), True),
    ("sendmsg4", lambda: send_and_receive(V4), True),
    ("sendmsg6", lambda: send_and_receive(V6), True),
    ("recvmsg4", lambda: send_and_receive(V4), False),
    ("recvmsg6", lambda: send_and_receive(V6), False),
    ("getpeername4", lambda: connected_names(V4), False),
    ("getpeername6", lambda: connected_names(V6), False),
    ("getsockname4", lambda: connected_names(V4), False),
    ("getsockname6", lambda: connected_names(V6), False),
    ("ingress", lambda: send_and_receive(V4), False),
    ("egress", lambda: send_and_receive(V4), True),
    ("socket_operations", connect_stream, False),
    ("device", open_device, True),
    ("sysctl", read_sysctl, True),
    ("getsockopt", get_option, True),
    ("setsockopt", set_option, True),
    pytest.param("connect_unix", unix(names), True, marks=UNIX),
    pytest.param("sendmsg_unix", unix(talk), True, marks=UNIX),
    pytest.param("recvmsg_unix", unix(talk), False, marks=UNIX),
    pytest.param("getpeername_unix", unix(names), False, marks=UNIX),
    pytest.param("getsockname_unix", unix(names), False, marks=UNIX),
    pytest.param("lsm_bind", lambda: bind(V4), True, marks=pytest.mark.needs("lsm_cgroup")),
]


@pytest.mark.parametrize(("name", "fire", "refuses"), HOOKS)
def test_each_hook_counts_and_refuses_in_its_cgroup_alone(name, fire, refuses, cgroup):
    with load(name) as obj:
        hook = obj.programs[name].attach_type
        with obj.programs[name].attach(cgroup) as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_CGROUP
            assert link.info.details == CgroupLink(cgroup.stat().st_ino, hook)
            fire()
            assert obj.globals["hits"][hook] == 0
            with cgroups.inside(cgroup):
                for _ in range(PRIME):
                    fire()
            assert obj.globals["hits"][hook] == PRIME
            if refuses:
                obj.globals["refuse"] = hook
                with cgroups.inside(cgroup), pytest.raises(PermissionError):
                    fire()
        obj.globals["hits"] = [0] * 64
        with cgroups.inside(cgroup):
            fire()
        assert obj.globals["hits"][hook] == 0


def test_a_link_is_updated_only_from_what_is_expected(cgroup):
    with load("first", "second", "third") as obj:
        first, second, third = (obj.programs[name] for name in ("first", "second", "third"))
        with first.attach(cgroup) as link:
            with pytest.raises(purebpf.KernelError, match=r"EPERM.*another program") as caught:
                link.update(third, old=second)
            assert caught.value.errno == errno.EPERM
            link.update(third, old=first)
            assert link.info.program_id == third.info.id
            with cgroups.inside(cgroup):
                make_socket()
            assert turns(obj) == [3]


@pytest.mark.needs("bpffs")
def test_a_pinned_link_stays_in_its_cgroup_and_gets_the_next_program(cgroup, bpffs):
    path = bpffs / "creation"
    with load("first") as one, load("second") as two:
        one.programs["first"].attach(cgroup, pin=path).close()
        with cgroups.inside(cgroup):
            make_socket()
        with two.programs["second"].attach(pin=path) as link:
            assert link.info.program_id == two.programs["second"].info.id
        with cgroups.inside(cgroup):
            make_socket()
        assert (turns(one), turns(two)) == ([1], [2])
        with purebpf.Link.open(path) as link:
            link.detach()
        with cgroups.inside(cgroup):
            make_socket()
        assert (turns(one), turns(two)) == ([], [])


def turns(obj: purebpf.Object) -> list[int]:
    """The programs that ran since the last time, in order."""
    found = list(obj.globals["order"][: obj.globals["ran"]])
    obj.globals["ran"] = 0
    return found


def test_programs_of_one_cgroup_run_as_they_were_attached(cgroup):
    with (
        load("first", "second") as obj,
        obj.programs["second"].attach(cgroup),
        obj.programs["first"].attach(cgroup),
    ):
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == [2, 1]
        found = Program.query(cgroup, "cgroup/sock_create")
        assert [each.id for each in found.programs] == [
            obj.programs["second"].info.id,
            obj.programs["first"].info.id,
        ]


@pytest.mark.needs("cgroup_order")
def test_programs_run_in_the_order_asked_for(cgroup):
    with (
        load("first", "second", "third") as obj,
        obj.programs["second"].attach(cgroup) as middle,
        obj.programs["third"].attach(cgroup, after="all") as last,
    ):
        before = Program.query(cgroup, "cgroup/sock_create")
        with obj.programs["first"].attach(cgroup, before="all", revision=before.revision) as link:
            with cgroups.inside(cgroup):
                make_socket()
            assert turns(obj) == [1, 2, 3]
            after = Program.query(cgroup, "cgroup/sock_create")
            assert [each.id for each in after.programs] == [
                each.info.program_id for each in (link, middle, last)
            ]
            assert after.revision == before.revision + 1
        with obj.programs["first"].attach(cgroup, before=last):
            with cgroups.inside(cgroup):
                make_socket()
            assert turns(obj) == [2, 1, 3]
        with pytest.raises(purebpf.AttachError, match="pass its link"):
            obj.programs["first"].attach(cgroup, after=obj.programs["third"])  # it has a link


@pytest.mark.needs("cgroup_order")
def test_an_outdated_revision_is_refused(cgroup):
    with load("first", "second") as obj:
        seen = Program.query(cgroup, "cgroup/sock_create").revision
        with (
            obj.programs["first"].attach(cgroup),
            pytest.raises(purebpf.AttachError, match=rf"ESTALE.*no longer {seen}"),
        ):
            obj.programs["second"].attach(cgroup, revision=seen)


def without_links() -> Interposer:
    """Linux before 5.7."""
    return Interposer(lambda call: errno.EINVAL if call.command == "BPF_LINK_CREATE" else None)


def test_without_links_programs_are_attached_side_by_side_and_replaced(cgroup):
    with load("first", "second", "third") as obj:
        with replaced(without_links()):
            one = obj.programs["first"].attach(cgroup)
            two = obj.programs["second"].attach(cgroup)
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == [1, 2]
        with pytest.raises(purebpf.NotSupportedError, match="without a bpf_link"):
            _ = one.info
        with pytest.raises(purebpf.NotSupportedError, match="no descriptor"):
            one.fileno()
        three = obj.programs["third"].attach(cgroup, replace=obj.programs["first"])
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == [3, 2]
        one.close()  # what it attached is replaced already
        two.close()
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == [3]
        three.detach()
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == []


def test_an_order_is_not_forgotten_on_kernels_that_have_none(cgroup):
    def decide(call):
        return errno.EINVAL if call.command in ("BPF_LINK_CREATE", "BPF_PROG_QUERY") else None

    with (
        load("first") as obj,
        replaced(Interposer(decide)),
        pytest.raises(purebpf.NotSupportedError, match=r"an order for .*Linux 6\.17"),
    ):
        obj.programs["first"].attach(cgroup, before="all")


def test_a_program_that_is_already_there_without_a_link(cgroup):
    with (
        load("first") as obj,
        replaced(without_links()),
        obj.programs["first"].attach(cgroup),
        pytest.raises(purebpf.AttachError, match="EINVAL"),
    ):
        obj.programs["first"].attach(cgroup)


def test_programs_above_are_effective_below(cgroup):
    with load("first") as obj, cgroups.made(cgroup) as below, obj.programs["first"].attach(cgroup):
        assert Program.query(below, at.BPF_CGROUP_INET_SOCK_CREATE).programs == ()
        (found,) = Program.query(below, "cgroup/sock_create", effective=True).programs
        assert found.id == obj.programs["first"].info.id
        with cgroups.inside(below):
            make_socket()
        assert turns(obj) == [1]


def test_a_program_of_another_process_needs_its_hook_from_the_caller(cgroup):
    with load("connect4") as obj, Program.from_id(obj.programs["connect4"].info.id) as found:
        with pytest.raises(TypeError, match="kind="):
            found.attach(cgroup)
        with found.attach(cgroup, kind="cgroup/connect4") as link:
            assert link.info.details.attach_type == at.BPF_CGROUP_INET4_CONNECT
        with pytest.raises(ValueError, match=r"hook 'cgroup/conect4'; similar: cgroup/connect4"):
            found.attach(cgroup, kind="cgroup/conect4")


def test_an_open_directory_will_do(cgroup):
    with load("first") as obj, open_directory(cgroup) as fd:
        with obj.programs["first"].attach(fd), cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == [1]


@contextmanager
def open_directory(path: Path) -> Iterator[Descriptor]:

    with Descriptor(os.open(path, os.O_RDONLY)) as fd:
        yield fd


def test_a_target_that_is_not_a_cgroup_is_refused(cgroup, tmp_path):
    with load("first") as obj:
        program = obj.programs["first"]
        for target in (None, 3):
            with pytest.raises(TypeError, match="target required: a cgroup"):
                program.attach(target)
        with pytest.raises(purebpf.KernelError, match=r"ENOENT.*cgroup2 file system is mounted at"):
            program.attach(cgroup / "no-such-cgroup")
        with pytest.raises(
            purebpf.AttachError, match=r"EBADF.*not a cgroup v2 directory; .*mounted at"
        ):
            program.attach(tmp_path)
        with pytest.raises(TypeError, match="exclude each other"):
            program.attach(cgroup, before="all", after="all")
        with pytest.raises(TypeError, match='a program, a link or "all"'):
            program.attach(cgroup, before=3)
        with pytest.raises(TypeError, match="keeps the position"):
            program.attach(cgroup, before="all", replace=program)


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        (None, "cgroup/connect4", "target required: a cgroup"),
        (3, "cgroup/connect4", "got the integer 3"),
        ("sockets", "sk_msg", "expected a sockmap"),
        (Path("/"), "tcx/ingress", "name or index of an interface"),
        (None, "tcx/ingress", "target required: the name or index of a netw"),
    ],
)
def test_a_query_of_the_wrong_place(target, kind, words):
    with pytest.raises(TypeError, match=words):
        Program.query(target, kind)


def test_a_link_may_be_ended_though_others_hold_it(cgroup, bpffs):
    with load("first") as obj:
        link = obj.programs["first"].attach(cgroup)
        link.pin(bpffs / "link")
        with purebpf.Link.from_id(link.info.id) as again:
            again.detach()
            assert again.closed
        assert link.info.details.cgroup_id == 0
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == []
        link.detach()
        assert not (bpffs / "link").exists()


def test_a_pinned_link_outlives_its_closing(cgroup, bpffs):
    with load("first") as obj:
        with obj.programs["first"].attach(cgroup) as link:
            link.pin(bpffs / "link")
        with cgroups.inside(cgroup):
            make_socket()
        assert turns(obj) == [1]
        with purebpf.Link.open(bpffs / "link") as again:
            again.detach()
        (bpffs / "link").unlink()


def test_a_cgroups_storage_is_read_by_its_id(cgroup):
    with load("with_storage") as obj, obj.programs["with_storage"].attach(cgroup):
        with cgroups.inside(cgroup):
            for _ in range(PRIME):
                make_socket()
        key = (cgroup.stat().st_ino, at.BPF_CGROUP_INET_SOCK_CREATE)
        assert obj.maps["created"][key] == PRIME
        assert sum(obj.maps["created_per_cpu"][key]) == PRIME
        assert [each.cgroup_inode_id for each in obj.maps["created"]] == [key[0]]


def test_every_hook_of_a_cgroup_is_tried_here():
    from purebpf.abi.sections import SECTIONS

    tried = {SPEC.programs[getattr(row, "values", row)[0]].attach_type for row in HOOKS}
    known = {section.attach_type for section in SECTIONS if section.attach == "cgroup"}
    assert known == tried
    assert attach_type_of("lsm_cgroup/socket_bind") == at.BPF_LSM_CGROUP


def test_a_kernel_that_tells_less_is_asked_for_less(cgroup):
    def decide(call):
        more = call.command == "BPF_PROG_QUERY" and call.field("query", "prog_attach_flags")
        return errno.EINVAL if more else None

    with load("first") as obj, obj.programs["first"].attach(cgroup):
        with replaced(Interposer(decide)):
            (found,) = Program.query(cgroup, "cgroup/sock_create").programs
        assert found == (obj.programs["first"].info.id, 0, 0)


def test_packets_of_a_cgroup_want_net_admin(cgroup):
    with load("egress") as obj:
        with (
            capabilities.without("net_admin", "sys_admin"),
            pytest.raises(purebpf.AttachError, match=r"EPERM.*lacks .*CAP_NET_ADMIN"),
        ):
            obj.programs["egress"].attach(cgroup)
        with obj.programs["egress"].attach(cgroup):
            pass


def test_a_cgroup_that_lets_none_below_attach(cgroup):
    from purebpf.loader.attach._common.prog_attach import attach_plainly

    with load("first", "second") as obj, cgroups.made(cgroup) as below:
        fd = Descriptor(os.open(cgroup, os.O_RDONLY))
        hook = at.BPF_CGROUP_INET_SOCK_CREATE
        with (
            attach_plainly(obj.programs["first"], fd, hook, "alone, as attach_flags 0 says"),
            pytest.raises(purebpf.AttachError, match=r"EPERM.*without BPF_F_ALLOW_MULTI"),
        ):
            obj.programs["second"].attach(below)
