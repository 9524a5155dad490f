"""Programs of tc, by tcx and by a filter of the clsact qdisc, fired by packets that are known."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import socket
import subprocess

import pytest

import purebpf
from purebpf.abi.bpf import bpf_attach_type as at
from purebpf.abi.bpf import bpf_link_type
from purebpf.loader.programs.link_info import DeviceLink
from purebpf.loader.programs.program import Program
from purebpf.syscall.backend import replaced
from tests.kernel.net_devices import PRIME, UNSPEC, load
from tests.support.host import capabilities, network
from tests.support.host.backends import Interposer

pytestmark = [
    pytest.mark.needs("bpf", "net_namespace"),
    pytest.mark.usefixtures("own_network"),
]

SHOT = 2  # TC_ACT_SHOT

tcx = pytest.mark.needs("tcx")
clsact = pytest.mark.needs("clsact")


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
        from purebpf.loader.attach._common.prog_attach import attach_plainly

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
def test_a_qdisc_goes_with_its_last_filter_whichever_link_made_it():
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
def test_closing_a_link_to_a_filter_that_is_gone_is_harmless():
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
            assert "clsact filter, as this kernel does not support tcx" in link.what
            assert box.mail() == PRIME
            assert obj.globals["hits"] == PRIME
        with pytest.raises(purebpf.NotSupportedError, match=r"an order for .*not support tcx"):
            obj.programs["packet"].attach("lo", direction="egress", before="all")


@clsact
@pytest.mark.parametrize("priority", [-1, 0x10000])
def test_a_priority_has_16_bits(priority: int):
    with load("packet") as obj, pytest.raises(ValueError, match=f"to 65535, not {priority}"):
        obj.programs["packet"].attach("lo", direction="egress", clsact=True, priority=priority)


@tcx
def test_tc_without_its_options_says_which_it_needs():
    with load("packet", "entering") as obj:
        packet = obj.programs["packet"]
        with pytest.raises(TypeError, match='direction required: "ingress" or "egress"'):
            packet.attach("lo")
        with pytest.raises(ValueError, match="not 'up'"):
            packet.attach("lo", direction="up")
        with pytest.raises(TypeError, match=r"tcx does not have priorities.*clsact=True"):
            obj.programs["entering"].attach("lo", priority=3)
        with pytest.raises(TypeError, match="take priority="):
            packet.attach("lo", direction="ingress", clsact=True, before="all")
        with pytest.raises(TypeError, match="keeps the position"):
            packet.attach("lo", direction="ingress", replace=packet, before="all")
    with (
        load("action") as obj,
        pytest.raises(purebpf.NotSupportedError, match="runs actions from a filt"),
    ):
        obj.programs["action"].attach("lo")


@clsact
def test_what_only_net_admin_may_do_over_netlink():
    with load("frame", "packet") as obj, capabilities.without("net_admin"):
        with pytest.raises(purebpf.AttachError, match=r"EPERM.*lacks CAP_NET_ADMIN"):
            obj.programs["frame"].attach("lo", mode="generic", netlink=True)
        with pytest.raises(purebpf.AttachError, match=r"EPERM.*lacks CAP_NET_ADMIN"):
            obj.programs["packet"].attach("lo", direction="ingress", clsact=True)
