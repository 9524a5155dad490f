"""Programs of interfaces and of netfilter, fired by packets that are known, and let go of."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_attach_type as at
from purebpf.abi.bpf import bpf_link_type
from purebpf.loader.programs.link_info import DeviceLink, NetfilterLink
from purebpf.loader.programs.program import Program
from purebpf.syscall import network_namespace
from purebpf.syscall.backend import replaced
from tests.kernel.net_devices import PRIME, SPEC, UNSPEC, load
from tests.support.host import network
from tests.support.host.backends import Interposer

pytestmark = [
    pytest.mark.needs("bpf", "net_namespace"),
    pytest.mark.usefixtures("own_network"),
]

ETH_P_OURS = 0x88B5  # for local experiments: nothing else sends it
DROP, PASS = 1, 2  # XDP_*

veth = pytest.mark.needs("veth")


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
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*lo already has an XDP program"):
                other.attach(lo, mode="generic")
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*lo already has an XDP program"):
                other.attach(lo, mode="generic", netlink=True)
            link.update(other, old=frame)
            assert link.info.program_id == other.info.id
            assert box.mail() == PRIME
        with other.attach(lo, mode="generic"):
            pass


@veth
def test_an_interface_of_another_network_namespace():
    """The thread is back in its own afterwards, also when attaching fails."""
    with Path("/proc/thread-self/ns/net").open("rb") as outside, network.namespace():
        inside = Path("/proc/thread-self/ns/net").open("rb")  # noqa: SIM115 - outlives the block
        with inside, network.pair("near", "far"), load("frame", wanted=ETH_P_OURS) as obj:
            with network_namespace.inside(outside.fileno()):
                own = Path("/proc/thread-self/ns/net").stat().st_ino
                with pytest.raises(ValueError, match="unknown network interface 'near'"):
                    obj.programs["frame"].attach("near", mode="generic")
                with pytest.raises(
                    ValueError, match=r"unknown network interface 'x'; known: .*near"
                ):
                    obj.programs["frame"].attach("x", netns=inside)
                link = obj.programs["frame"].attach("near", mode="generic", netns=inside)
                assert Path("/proc/thread-self/ns/net").stat().st_ino == own
            with link:
                send_frames("far", PRIME)
                assert arrived(obj) == PRIME


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


METADATA = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

__u64 frames, hashes;

SEC("xdp")
int frame(struct xdp_md *ctx)
{
    enum xdp_rss_hash_type kind;
    __u32 hash;

    __sync_fetch_and_add(&frames, 1);
    if (bpf_xdp_metadata_rx_hash(ctx, &hash, &kind) != -95) /* EOPNOTSUPP: a driver without it */
        __sync_fetch_and_add(&hashes, 1);
    return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
"""


@veth
@pytest.mark.needs("xdp_metadata", "clang", "vmlinux_btf")
def test_a_program_bound_to_an_interface_asks_its_driver():
    from tests.support.patience import until

    spec = purebpf.read_object(purebpf.build.compile(METADATA))
    with pytest.raises(purebpf.VerifierError, match=r"configure\('frame', ifindex=") as refused:
        purebpf.load(spec)
    assert "device-bound" in refused.value.line
    with network.pair("near", "far"):
        bound = spec.configure("frame", ifindex=socket.if_nametoindex("near"))
        with purebpf.load(bound) as obj:
            with pytest.raises(purebpf.AttachError, match=r"EINVAL.*bound to another interface"):
                obj.programs["frame"].attach("far")
            with obj.programs["frame"].attach("near"):
                send_frames("far", PRIME)
                until(lambda: obj.globals["frames"] >= PRIME)
                assert obj.globals["hashes"] == obj.globals["frames"] >= PRIME


def test_what_is_bound_to_no_interface_of_this_machine(lo):
    spec = SPEC.only("frame").configure("frame", ifindex=1 << 30)
    with pytest.raises(purebpf.PurebpfError, match="no interface has index 1073741824"):
        purebpf.load(spec)
    with pytest.raises(purebpf.PurebpfError, match=r"lo cannot be asked|needs Linux 6\.3"):
        purebpf.load(SPEC.only("frame").configure("frame", ifindex=lo))
    with pytest.raises(purebpf.SchemaError, match="only an XDP program is bound to an interface"):
        SPEC.configure("packet", ifindex=lo)


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
        with pytest.raises(purebpf.AttachError, match='mode="generic"'):
            obj.programs["frame"].attach("near", mode="native")
        obj.globals["answer"] = DROP
        with obj.programs["long_frame"].attach("near", mode="native"):
            send_frames("far", PRIME, size=8000)
            assert arrived(obj) == PRIME


def test_a_driver_without_native_xdp():
    with (
        load("frame") as obj,
        pytest.raises(purebpf.AttachError, match="the interface's driver does not support XDP"),
    ):
        obj.programs["frame"].attach("lo", mode="native")


def no_links(call):
    return errno.EINVAL if call.command == "BPF_LINK_CREATE" else None


def test_before_there_were_xdp_links(lo, box):
    with load("frame", "other_frame", answer=PASS) as obj:
        frame, other = obj.programs["frame"], obj.programs["other_frame"]
        with replaced(Interposer(no_links)):
            first = frame.attach("lo")
        assert "over netlink, as this kernel does not support XDP links" in first.what
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
        with pytest.raises(TypeError, match="target required: the name or index of a netw"):
            obj.programs["frame"].attach()
        with pytest.raises(ValueError, match=r"unknown network interface 'l0'; known: lo"):
            obj.programs["frame"].attach("l0")
        with pytest.raises(ValueError, match=r"unknown network interface 4711"):
            obj.programs["frame"].attach(4711)
        with pytest.raises(ValueError, match=r"unknown network interface -1"):
            obj.programs["frame"].attach(-1)
        with pytest.raises(ValueError, match="generic, native, offload"):
            obj.programs["frame"].attach("lo", mode="fast")


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


@pytest.mark.needs("tcx")
def test_a_device_that_is_not_netkit_is_refused():
    with load("packet") as obj:
        from purebpf.loader.attach import netkit

        with pytest.raises(purebpf.AttachError, match="lo is not a primary netkit device"):
            netkit.attach(obj.programs["packet"], "lo", end="primary")
        with pytest.raises(TypeError, match='end required: "primary" or "peer"'):
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
            with pytest.raises(
                purebpf.NotSupportedError, match=r"^updating .*: links of this kind keep"
            ):
                link.update(filter_)
            with pytest.raises(purebpf.AttachError, match=r"EBUSY.*of this priority"):
                filter_.attach("ipv4", hook="input", priority=-17)
            with filter_.attach("ipv4", hook="output"):
                obj.globals["answer"] = 0
                with pytest.raises(
                    PermissionError
                ):  # dropped on the way out, which the sender sees
                    box.mail(1)
            assert box.mail() == 0
        obj.globals["hits"] = 0
        assert box.mail() == PRIME
        assert obj.globals["hits"] == 0


@pytest.mark.needs("netfilter_link")
def test_netfilter_without_its_options_says_which_it_needs():
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
