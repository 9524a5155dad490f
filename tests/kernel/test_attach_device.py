"""Programs of interfaces and of netfilter, fired by packets that are known, and let go of."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

import purebpf
from purebpf.abi.bpf import bpf_attach_type as at
from purebpf.abi.bpf import bpf_link_type
from purebpf.kernel.link_info import DeviceLink, NetfilterLink
from purebpf.kernel.program import Program
from purebpf.syscall.door import replaced
from tests.support import capabilities, network
from tests.support.doors import Interposer

pytestmark = pytest.mark.needs("bpf", "net_namespace")

SPEC = purebpf.read_object(Path(__file__).parent.parent / "data" / "net_device.bpf.o")
PRIME = 13
ETH_P_OURS = 0x88B5  # for local experiments: nobody else sends it
DROP, PASS = 1, 2  # XDP_*
SHOT, UNSPEC = 2, -1 & 0xFFFFFFFF  # TC_ACT_*

tcx = pytest.mark.needs("tcx")
clsact = pytest.mark.needs("clsact")
veth = pytest.mark.needs("veth")


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    with network.namespace():
        yield


@pytest.fixture
def lo() -> int:
    return socket.if_nametoindex("lo")


def load(*names: str, **values: object) -> purebpf.Object:
    spec = SPEC.only(*names)
    if not names[0].startswith("to_"):
        inside = {name: each for name, each in spec.maps.items() if each.section}
        spec = spec._replace(maps=inside)
    return purebpf.load(spec.set(**values))


class Mailbox:
    """A socket, and datagrams to it over the loopback."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)

    def mail(self, times: int = PRIME) -> int:
        """Send; how many arrived."""
        for _ in range(times):
            self._socket.sendto(b"x", self._socket.getsockname())
        count = 0
        while True:
            try:
                self._socket.recv(1)
            except BlockingIOError:
                return count
            count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with Mailbox() as mailbox:
        yield mailbox


# XDP


@pytest.mark.parametrize("options", [{"mode": "generic"}, {}], ids=["generic", "any"])
def test_xdp_sees_and_drops_what_enters(options, lo, box):
    with load("frame", answer=PASS) as obj:
        with obj.programs["frame"].attach("lo", **options) as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_XDP
            assert link.info.details == DeviceLink(lo, at.BPF_XDP)
            assert box.mail() == PRIME
            assert obj.globals["hits"] == PRIME
            obj.globals["answer"] = DROP
            assert box.mail() == 0
        assert box.mail() == PRIME
        assert obj.globals["hits"] == 2 * PRIME


def test_an_xdp_link_is_updated_and_excludes_others(lo, box):
    with load("frame", "other_frame", answer=PASS) as obj:
        frame, other = obj.programs["frame"], obj.programs["other_frame"]
        with frame.attach(lo, mode="generic") as link:
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*lo has an XDP program"):
                other.attach(lo, mode="generic")
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*lo has an XDP program"):
                other.attach(lo, mode="generic", netlink=True)
            link.update(other, old=frame)
            assert link.info.program_id == other.info.id
            assert box.mail() == PRIME
        with other.attach(lo, mode="generic"):
            pass


@veth
@pytest.mark.needs("xdp_frags")
def test_native_xdp_and_frames_of_several_buffers():
    with (
        network.pair("near", "far"),
        load("long_frame", wanted=ETH_P_OURS, answer=DROP) as obj,
        obj.programs["long_frame"].attach("near", mode="native") as link,
    ):
        assert "native XDP of near" in link.what
        send_frames("far", PRIME)
        assert arrived(obj) == PRIME


def send_frames(interface: str, count: int, size: int = 64) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        header = b"\xff" * 6 + b"\2\0\0\0\0\1" + ETH_P_OURS.to_bytes(2, "big")
        for _ in range(count):
            sender.send(header.ljust(size, b"\0"))


def arrived(obj: purebpf.Object, count: int = PRIME) -> int:
    """The hits, once there are `count` of them or time is up: a veth's other end takes its time."""
    from tests.support.patience import until

    until(lambda: obj.globals["hits"] >= count)
    return int(obj.globals["hits"])


@veth
@pytest.mark.needs("xdp_frags")
def test_frames_of_several_buffers_want_a_program_that_says_so():
    with network.pair("near", "far"), load("frame", "long_frame", wanted=ETH_P_OURS) as obj:
        network.set_mtu("far", 9000)
        network.set_mtu("near", 9000)
        with pytest.raises(purebpf.AttachError, match=r'SEC\("xdp.frags"\)|MTU'):
            obj.programs["frame"].attach("near", mode="native")
        obj.globals["answer"] = DROP
        with obj.programs["long_frame"].attach("near", mode="native"):
            send_frames("far", PRIME, size=8000)
            assert arrived(obj) == PRIME


def test_a_driver_without_native_xdp():
    with (
        load("frame") as obj,
        pytest.raises(purebpf.AttachError, match="the driver of the interface has no XDP"),
    ):
        obj.programs["frame"].attach("lo", mode="native")


def no_links(call):
    return errno.EINVAL if call.command == "BPF_LINK_CREATE" else None


def test_before_there_were_xdp_links(lo, box):
    with load("frame", "other_frame", answer=PASS) as obj:
        frame, other = obj.programs["frame"], obj.programs["other_frame"]
        with replaced(Interposer(no_links)):
            first = frame.attach("lo")
        assert "over netlink, as this kernel has no XDP links" in first.what
        assert box.mail() == PRIME
        assert obj.globals["hits"] == PRIME
        with pytest.raises(purebpf.AttachError, match=r"another mode"):
            other.attach("lo", replace=other)  # that is not what runs
        with other.attach("lo", replace=frame):
            first.close()  # takes nothing of others away
            assert box.mail() == PRIME
            assert obj.globals["hits"] == 2 * PRIME
        assert box.mail() == PRIME
        assert obj.globals["hits"] == 2 * PRIME


def test_the_interface_is_named_or_helped_with():
    with load("frame") as obj:
        with pytest.raises(TypeError, match="which network interface"):
            obj.programs["frame"].attach()
        with pytest.raises(ValueError, match=r"no network interface 'l0' here; there is lo"):
            obj.programs["frame"].attach("l0")
        with pytest.raises(ValueError, match=r"no network interface 4711"):
            obj.programs["frame"].attach(4711)
        with pytest.raises(ValueError, match=r"no network interface -1"):
            obj.programs["frame"].attach(-1)
        with pytest.raises(ValueError, match="generic, native, offload"):
            obj.programs["frame"].attach("lo", mode="fast")


# tc


SIDES = [("entering", at.BPF_TCX_INGRESS), ("leaving", at.BPF_TCX_EGRESS)]


@tcx
@pytest.mark.parametrize(("name", "hook"), SIDES)
def test_tcx_sees_and_drops(name, hook, lo, box):
    with load(name, answer=UNSPEC) as obj:
        with obj.programs[name].attach("lo") as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_TCX
            assert link.info.details == DeviceLink(lo, hook)
            assert box.mail() == PRIME
            assert obj.globals["hits"] == PRIME
            (found,) = Program.query("lo", hook).programs
            assert found[:2] == (obj.programs[name].info.id, link.info.id)
            obj.globals["answer"] = SHOT
            assert box.mail() == 0
        obj.globals["hits"] = 0
        assert box.mail() == PRIME
        assert obj.globals["hits"] == 0


def turns(obj: purebpf.Object) -> list[int]:
    found = list(obj.globals["order"][: obj.globals["ran"]])
    obj.globals["ran"] = 0
    return found


@tcx
def test_tcx_programs_run_in_the_order_asked_for(box):
    with load("first", "second", "third") as obj:
        first, second, third = (obj.programs[name] for name in ("first", "second", "third"))
        egress = {"direction": "egress"}
        seen = Program.query("lo", "tcx/egress").revision
        with second.attach("lo", **egress), third.attach("lo", **egress) as last:
            box.mail(1)
            assert turns(obj) == [2, 3]
            with first.attach("lo", before="all", **egress):
                box.mail(1)
                assert turns(obj) == [1, 2, 3]
            with first.attach("lo", before=last, **egress):
                box.mail(1)
                assert turns(obj) == [2, 1, 3]
            with first.attach("lo", after=second, **egress):
                box.mail(1)
                assert turns(obj) == [2, 1, 3]
            with pytest.raises(purebpf.AttachError, match=r"ENOENT.*not attached there"):
                first.attach("lo", after=first, **egress)
            with pytest.raises(purebpf.AttachError, match="ESTALE"):
                first.attach("lo", revision=seen, **egress)
        box.mail(1)
        assert turns(obj) == []


@tcx
def test_a_tcx_link_is_updated_and_detached(box):
    with load("first", "second") as obj:
        link = obj.programs["first"].attach("lo", direction="ingress")
        link.update(obj.programs["second"])
        box.mail(1)
        assert turns(obj) == [2]
        with purebpf.Link.from_id(link.info.id) as again:
            again.detach()
        assert link.info.details.ifindex == 0
        link.close()
        box.mail(1)
        assert turns(obj) == []


@tcx
def test_a_tcx_program_without_a_link_is_replaced(box):
    with load("first", "second") as obj:
        first, second = obj.programs["first"], obj.programs["second"]
        from purebpf.kernel.attach.plain import attach_plainly

        index = socket.if_nametoindex("lo")
        with attach_plainly(first, index, at.BPF_TCX_INGRESS, "first, as others attach it"):
            box.mail(1)
            assert turns(obj) == [1]
            with second.attach("lo", direction="ingress", replace=first):
                box.mail(1)
                assert turns(obj) == [2]
        assert Program.query("lo", "tcx/ingress").programs == ()


def qdiscs() -> list[str]:
    shown = subprocess.run(["tc", "qdisc", "show", "dev", "lo"], check=True, capture_output=True)
    return re.findall(r"qdisc (\w+)", shown.stdout.decode())


def filters(side: str) -> list[str]:
    command = ["tc", "-json", "filter", "show", "dev", "lo", side]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return [each["options"]["prog"]["id"] for each in shown if "options" in each]


@clsact
@pytest.mark.needs("tc")
@pytest.mark.parametrize("side", ["ingress", "egress"])
def test_a_filter_takes_its_qdisc_with_it(side, box):
    with load("packet", answer=UNSPEC) as obj:
        program = obj.programs["packet"]
        with program.attach("lo", direction=side, clsact=True) as link:
            assert "(clsact filter)" in link.what
            assert "clsact" in qdiscs()
            assert filters(side) == [program.info.id]
            assert box.mail() == PRIME
            assert obj.globals["hits"] == PRIME
            obj.globals["answer"] = SHOT
            assert box.mail() == 0
        assert "clsact" not in qdiscs()
        obj.globals["hits"] = 0
        assert box.mail() == PRIME
        assert obj.globals["hits"] == 0


@clsact
@pytest.mark.needs("tc")
def test_a_qdisc_goes_when_the_last_filter_does_whoever_of_us_made_it():
    with load("first", "second") as obj:
        one = obj.programs["first"].attach("lo", direction="ingress", clsact=True)
        two = obj.programs["second"].attach("lo", direction="egress", clsact=True)
        one.close()
        assert "clsact" in qdiscs()
        assert (len(filters("ingress")), len(filters("egress"))) == (0, 1)
        two.close()
        assert "clsact" not in qdiscs()


@clsact
@pytest.mark.needs("tc")
def test_what_others_made_stays():
    with load("first") as obj:
        subprocess.run(["tc", "qdisc", "add", "dev", "lo", "clsact"], check=True)
        obj.programs["first"].attach("lo", direction="ingress", clsact=True).close()
        assert "clsact" in qdiscs()
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "clsact"], check=True)
        link = obj.programs["first"].attach("lo", direction="ingress", clsact=True)
        theirs = ["tc", "filter", "add", "dev", "lo", "egress", "matchall", "action", "pass"]
        has_matchall = subprocess.run(theirs, check=False, capture_output=True).returncode == 0
        link.close()
        assert ("clsact" in qdiscs()) == has_matchall


@clsact
def test_filters_run_by_priority_and_share_one(box):
    with (
        load("first", "second", "third") as obj,
        obj.programs["second"].attach("lo", direction="ingress", clsact=True, priority=20),
        obj.programs["first"].attach("lo", direction="ingress", clsact=True, priority=10),
        obj.programs["third"].attach("lo", direction="ingress", clsact=True),
        obj.programs["third"].attach("lo", direction="ingress", clsact=True),
    ):
        box.mail(1)
        assert turns(obj) == [1, 2, 3, 3]


@clsact
@pytest.mark.needs("tc")
def test_a_filter_that_somebody_else_removed():
    with load("first") as obj:
        link = obj.programs["first"].attach("lo", direction="ingress", clsact=True)
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "clsact"], check=True)
        link.close()


@clsact
@pytest.mark.needs("tc")
def test_a_filter_is_removed_from_the_namespace_that_it_was_made_in():
    with load("first") as obj:
        link = obj.programs["first"].attach("lo", direction="ingress", clsact=True)
        with network.namespace():
            link.close()
        assert "clsact" not in qdiscs()


@clsact
def test_a_filter_is_made_and_removed_while_an_event_loop_runs(box):
    async def attached() -> int:
        with obj.programs["packet"].attach("lo", direction="egress", clsact=True):
            return box.mail()

    with load("packet", answer=SHOT) as obj:
        assert asyncio.run(attached()) == 0
        assert box.mail() == PRIME


def without_tcx(call):
    mine = call.command in ("BPF_LINK_CREATE", "BPF_PROG_QUERY")
    return errno.EINVAL if mine else None


@clsact
def test_a_kernel_without_tcx_gets_a_filter_and_says_so(box):
    with load("packet", answer=UNSPEC) as obj, replaced(Interposer(without_tcx)):
        with obj.programs["packet"].attach("lo", direction="egress") as link:
            assert "clsact filter, as this kernel has no tcx" in link.what
            assert box.mail() == PRIME
            assert obj.globals["hits"] == PRIME
        with pytest.raises(purebpf.NotSupportedError, match=r"an order for .*no tcx"):
            obj.programs["packet"].attach("lo", direction="egress", before="all")


@clsact
@pytest.mark.parametrize("priority", [-1, 0x10000])
def test_a_priority_has_16_bits(priority: int):
    with load("packet") as obj, pytest.raises(ValueError, match=f"to 65535, not {priority}"):
        obj.programs["packet"].attach("lo", direction="egress", clsact=True, priority=priority)


@tcx
def test_tc_is_told_what_it_needs():
    with load("packet", "entering") as obj:
        packet = obj.programs["packet"]
        with pytest.raises(TypeError, match='direction="ingress" or "egress"'):
            packet.attach("lo")
        with pytest.raises(ValueError, match="not 'up'"):
            packet.attach("lo", direction="up")
        with pytest.raises(TypeError, match=r"tcx has no priorities.*clsact=True"):
            obj.programs["entering"].attach("lo", priority=3)
        with pytest.raises(TypeError, match="ordered by priority="):
            packet.attach("lo", direction="ingress", clsact=True, before="all")
        with pytest.raises(TypeError, match="runs where that one did"):
            packet.attach("lo", direction="ingress", replace=packet, before="all")
    with load("action") as obj, pytest.raises(purebpf.NotSupportedError, match="belongs to a filt"):
        obj.programs["action"].attach("lo")


@clsact
def test_what_only_net_admin_may_do_over_netlink():
    with load("frame", "packet") as obj, capabilities.without("net_admin"):
        with pytest.raises(purebpf.AttachError, match=r"EPERM.*lacks CAP_NET_ADMIN"):
            obj.programs["frame"].attach("lo", mode="generic", netlink=True)
        with pytest.raises(purebpf.AttachError, match=r"EPERM.*lacks CAP_NET_ADMIN"):
            obj.programs["packet"].attach("lo", direction="ingress", clsact=True)


# netkit


@pytest.mark.needs("netkit")
def test_netkit_sees_what_either_end_sends():
    with network.netkit_pair() as (primary, peer), load("from_primary", "from_peer") as obj:
        obj.globals["answer"] = UNSPEC
        for name, end in (("from_primary", primary), ("from_peer", peer)):
            with obj.programs[name].attach(primary) as link:
                assert link.info.type == bpf_link_type.BPF_LINK_TYPE_NETKIT
                there = socket.if_nametoindex(end)
                assert link.info.details == DeviceLink(there, obj.programs[name].attach_type)
                obj.globals["hits"] = 0
                send_datagrams(end, PRIME)
                assert obj.globals["hits"] == PRIME
                (found,) = Program.query(primary, link.info.details.attach_type).programs
                assert found.link_id == link.info.id
        obj.globals["hits"] = 0
        send_datagrams(primary, PRIME)
        assert obj.globals["hits"] == 0


def send_datagrams(interface: str, count: int) -> None:
    """IPv4 from one end of a pair that has no addresses."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as sender:
        for _ in range(count):
            sender.sendto(bytes(20), (interface, 0x0800))


@tcx
def test_what_is_no_netkit_device():
    with load("packet") as obj:
        from purebpf.kernel.attach import netkit

        with pytest.raises(purebpf.AttachError, match="lo is no primary netkit device"):
            netkit.attach(obj.programs["packet"], "lo", end="primary")
        with pytest.raises(TypeError, match='end="primary" or "peer"'):
            netkit.attach(obj.programs["packet"], "lo")
        with pytest.raises(ValueError, match="not 'left'"):
            netkit.attach(obj.programs["packet"], "lo", end="left")


# netfilter


@pytest.mark.needs("netfilter_link")
def test_netfilter_sees_and_drops(box):
    with load("filter", answer=1) as obj:
        filter_ = obj.programs["filter"]
        with filter_.attach("ipv4", hook="input", priority=-17) as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_NETFILTER
            assert link.info.details == NetfilterLink(2, 1, -17, 0)
            assert box.mail() == PRIME
            assert obj.globals["hits"] == PRIME
            with pytest.raises(purebpf.NotSupportedError, match="its kind stays as it is"):
                link.update(filter_)
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*of this priority"):
                filter_.attach("ipv4", hook="input", priority=-17)
            with filter_.attach("ipv4", hook="output"):
                obj.globals["answer"] = 0
                with pytest.raises(PermissionError):  # dropped on the way out, which is told
                    box.mail(1)
            assert box.mail() == 0
        obj.globals["hits"] = 0
        assert box.mail() == PRIME
        assert obj.globals["hits"] == 0


@pytest.mark.needs("netfilter_link")
def test_netfilter_is_told_what_it_needs():
    with load("filter") as obj:
        filter_ = obj.programs["filter"]
        with pytest.raises(TypeError, match='"ipv4", hook="input"'):
            filter_.attach("ipv4")
        with pytest.raises(ValueError, match="ipv4, ipv6"):
            filter_.attach("arp", hook="input")
        with pytest.raises(ValueError, match="prerouting, input"):
            filter_.attach("ipv4", hook="inside")
        with pytest.raises(purebpf.AttachError, match=r"ERANGE.*the lowest and the highest"):
            filter_.attach("ipv4", hook="input", priority=-(1 << 31))
