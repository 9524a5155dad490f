"""struct_ops: a congestion control of TCP in BPF, found by its name, used, and gone again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_link_type, bpf_prog_type
from purebpf.btf.types.kinds import Kind
from purebpf.errors import NotSupportedError, SchemaError
from purebpf.loader.types.kernel_btf import kernel_btf
from tests.support.programs.children import in_child

DATA = Path(__file__).parents[3] / "data"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
SPEC = purebpf.read_object(DATA / "attach_struct_ops.bpf.o")

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf", "struct_ops")
links = pytest.mark.needs("struct_ops_links")


def only(name: str, spec: purebpf.ObjectSpec = SPEC) -> purebpf.ObjectSpec:
    """Only one of its struct_ops maps."""
    others = [each.name for each in spec.maps.values() if each.type == 26 and each.name != name]
    return spec.leave_out(*others).struct_ops(name)


def available() -> list[str]:
    return AVAILABLE.read_text().split()


@contextmanager
def connection(algorithm: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends, of which the first sends under a congestion control."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        sender.connect(server.getsockname())
        receiver, _ = server.accept()
        with receiver:
            yield sender, receiver


def transfer(algorithm: str, count: int = 20) -> None:
    with connection(algorithm) as (sender, receiver):
        for _ in range(count):
            sender.sendall(bytes(1000))
            received = 0
            while received < 1000:
                received += len(receiver.recv(1000))


def test_a_table_is_registered_used_and_gone():
    with purebpf.load(only("plain")) as obj:
        assert "purebpf_plain" not in available()
        with obj.maps["plain"].attach() as link:
            assert "purebpf_plain" in available()
            transfer("purebpf_plain")
            with pytest.raises(NotSupportedError, match="without a bpf_link"):
                link.pin("/nowhere")
        assert "purebpf_plain" not in available()
        with pytest.raises(FileNotFoundError), connection("purebpf_plain"):
            pass
        seen = obj.globals["seen"]
        assert seen.init == 1
        assert seen.cong_avoid > 0


def test_an_object_attaches_its_tables():
    with purebpf.load(only("plain")) as obj:
        (link,) = obj.attach()
        assert obj.links == (link,)
        assert "purebpf_plain" in available()
    assert "purebpf_plain" not in available()


@pytest.mark.parametrize("name", ["plain", pytest.param("linked", marks=links)])
def test_a_child_that_closes_it_leaves_it_registered(name: str):
    with purebpf.load(only(name)) as obj:
        link = obj.maps[name].attach()
        in_child(link.close)
        in_child(obj.close)
        assert f"purebpf_{name}" in available()
        link.close()
        assert f"purebpf_{name}" not in available()


def test_one_name_is_registered_once():
    with purebpf.load(only("plain")) as one, purebpf.load(only("plain")) as two:
        reason = "the name is already registered"
        with one.maps["plain"].attach(), pytest.raises(purebpf.AttachError, match=reason):
            two.maps["plain"].attach()
        assert "purebpf_plain" not in available()


@links
def test_a_link_registers_and_can_be_pinned(bpffs: Path):
    with purebpf.load(only("linked")) as obj:
        with obj.maps["linked"].attach() as link:
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_STRUCT_OPS
            link.pin(bpffs / "link")
        assert "purebpf_linked" in available()
    transfer("purebpf_linked")
    with purebpf.Link.open(bpffs / "link"):
        (bpffs / "link").unlink()
    assert "purebpf_linked" not in available()


@links
def test_a_link_goes_over_to_a_successor():
    spec = SPEC.leave_out("plain").struct_ops("linked").struct_ops("successor")
    with purebpf.load(spec) as obj, obj.maps["linked"].attach() as link:
        transfer("purebpf_linked")
        assert obj.globals["seen"].init == 1
        link.update(obj.maps["successor"], old=obj.maps["linked"])
        transfer("purebpf_linked")
        assert obj.globals["seen"].init == 1, "the successor has no init"
        link.detach()
        assert "purebpf_linked" not in available()


def test_members_are_changed_before_loading():
    spec = only("plain", SPEC.struct_ops("plain", name="purebpf_other", init="on_other_init"))
    with purebpf.load(spec) as obj:
        assert "on_init" not in obj.programs, "what no table refers to is not loaded"
        with obj.maps["plain"].attach():
            transfer("purebpf_other")
        assert (obj.globals["seen"].init, obj.globals["seen"].other_init) == (0, 1)


def test_a_member_may_be_taken_away():
    with purebpf.load(only("plain", SPEC.struct_ops("plain", init=None))) as obj:
        with obj.maps["plain"].attach():
            transfer("purebpf_plain")
        assert obj.globals["seen"].init == 0


def test_what_must_be_there_is_missed():
    spec = only("plain", SPEC.struct_ops("plain", ssthresh=None))
    reason = "a required member is not set"
    with purebpf.load(spec) as obj, pytest.raises(purebpf.AttachError, match=reason):
        obj.maps["plain"].attach()


@links
def test_a_table_for_links_is_judged_when_it_is_attached():
    both = SPEC.leave_out("plain").struct_ops("linked").struct_ops("successor", cong_avoid=None)
    reason = "a required member is not set"
    with purebpf.load(both) as obj:
        with pytest.raises(purebpf.AttachError, match=reason):
            obj.maps["successor"].attach()
        with obj.maps["linked"].attach() as link:
            with pytest.raises(purebpf.AttachError, match=reason):
                link.update(obj.maps["successor"])
            transfer("purebpf_linked")


@links
def test_a_table_for_links_is_attached_again():
    with purebpf.load(only("linked")) as obj:
        for _ in range(2):
            with obj.maps["linked"].attach():
                transfer("purebpf_linked", 3)


def test_a_program_that_no_table_refers_to_is_named():
    said = "no struct_ops map of the object|attach_btf_id 0 is not"  # older kernels have a log
    with pytest.raises(purebpf.VerifierError, match=said) as caught:
        purebpf.load(SPEC.only("on_other_init"))
    assert "on_other_init" in str(caught.value)


def test_members_that_this_kernel_does_not_have():
    with purebpf.load(only("newer")) as obj:
        assert "in_the_future" not in obj.programs
        with obj.maps["newer"].attach():
            transfer("purebpf_newer", 3)
    filled = only("newer", SPEC.struct_ops("newer", future_flags=1))
    reason = (
        r"struct tcp_congestion_ops does not have a member 'future_flags', which is not zero here"
    )
    with pytest.raises(NotSupportedError, match=reason):
        purebpf.load(filled)


def test_a_program_is_for_one_member():
    twice = SPEC.struct_ops("plain", ssthresh="on_undo_cwnd")
    with pytest.raises(NotSupportedError, match=r"'on_undo_cwnd': .* as different members"):
        purebpf.load(twice)


def test_a_program_for_something_else_is_not_a_member():
    program = SPEC.programs["on_init"]._replace(type=bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS)
    other = SPEC._replace(programs={**SPEC.programs, "on_init": program})
    with pytest.raises(
        NotSupportedError, match=r"'on_init': struct_ops 'plain' has it as a member"
    ):
        purebpf.load(other)


def test_a_struct_ops_map_without_a_struct_says_where_structs_are():
    assert SPEC.btf is not None
    number = next(at for at in range(len(SPEC.btf)) if SPEC.btf.kind(at) is Kind.INT)
    declared = SPEC.maps["plain"]._replace(value_type_id=number, contents=b"", initial=())
    with pytest.raises(
        NotSupportedError, match=r"map 'plain': .* variables in SEC\(\"\.struct_ops"
    ):
        purebpf.load(SPEC._replace(maps={**SPEC.maps, "plain": declared}))


def test_mistakes_in_changing_members():
    with pytest.raises(KeyError, match=r"does not have a member 'ssthres'; similar: ssthresh"):
        SPEC.struct_ops("plain", ssthres=None)
    with pytest.raises(KeyError, match=r"unknown program 'on_ini'; similar: on_init"):
        SPEC.struct_ops("plain", init="on_ini")
    with pytest.raises(SchemaError, match="300"):
        SPEC.struct_ops("plain", flags="300")
    with pytest.raises(SchemaError, match=r"map \.bss is not a struct_ops map"):
        SPEC.struct_ops(".bss", flags=1)


def test_every_table_left_out_leaves_every_program_out():
    with purebpf.load(SPEC.leave_out("plain")) as obj:
        assert not obj.programs
        assert set(obj.maps) == {".bss"}


def test_programs_run_for_a_test_where_the_kernel_has_one():
    if not kernel_btf().find("bpf_struct_ops_bpf_dummy_ops", Kind.STRUCT):
        pytest.skip("this kernel has no bpf_dummy_ops")
    with purebpf.load(DATA / "load_dummy_ops.bpf.o") as obj:
        result = obj.programs["on_test_1"].test_run(ctx=bytes(8))
        assert result.retval == 0xF2F3F4F5


@pytest.fixture(autouse=True)
def _no_name_stays() -> Iterator[None]:
    yield
    with suppress(OSError):
        assert not [name for name in available() if name.startswith("purebpf")]
