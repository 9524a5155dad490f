"""Each call of load and attach fails with each error of its man page: nothing is left behind.

A failing call leads to the documented error, which carries that errno, or to a success where
something replaces what was refused.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import errno_name
from purebpf.loader.attach.iterator import IteratorLink
from purebpf.loader.features import features
from purebpf.syscall.backend import replaced
from tests.support import probes
from tests.support.host.backends import Call
from tests.support.host.faults import Accountant, Fault, alive, faults

pytestmark = pytest.mark.needs("bpf", "perf_event", "tracefs", "vmlinux_btf")

DATA = Path(__file__).parents[3] / "data"
DOCUMENTED = (purebpf.KernelError, purebpf.NotSupportedError)
IRREPLACEABLE = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)
CREATING = (
    "BPF_ITER_CREATE",
    "BPF_MAP_CREATE",
    "BPF_BTF_LOAD",
    "BPF_PROG_LOAD",
    "BPF_LINK_CREATE",
    "BPF_RAW_TRACEPOINT_OPEN",
    "perf_event_open",
)


def read(file: str, *programs: str) -> purebpf.ObjectSpec:
    spec = purebpf.read_object(DATA / file)
    return spec.only(*programs) if programs else spec


OBJECTS = {
    "counter": read("load_counter.bpf.o"),
    "attach": read("load_attach.bpf.o", "on_tracepoint", "on_raw"),
    "btf": read("load_attach.bpf.o", "on_btf"),
    "tail": read("load_tail.bpf.o"),
    "sample": read("load_attach.bpf.o", "on_sample"),
    "probes": read("attach_probes.bpf.o", "on_kretprobe", "on_uretprobe"),
    "multi": read("attach_probes.bpf.o", "on_multi"),
    "trampoline": read("attach_probes.bpf.o", "on_fexit"),
    "iterator": read("attach_iterators.bpf.o", "list_tasks"),
}
NEEDS = {"probes": "kprobes", "multi": "kprobe_multi", "trampoline": "trampolines"}


def use(name: str) -> None:
    """Load, attach, and read what there is."""
    with purebpf.load(OBJECTS[name]) as obj:
        obj.attach()
        if name == "sample":
            with (
                purebpf.PerfEvent.sampling(frequency=99, pid=os.getpid()) as event,
                obj.programs["on_sample"].attach(event),
            ):
                event.read()
        if name == "iterator":
            with obj.programs["list_tasks"].attach() as link:
                assert isinstance(link, IteratorLink)
                link.read()
        dict(obj.globals)
        for each in obj.maps.values():
            if each.name == "calls":
                list(each.items())


@pytest.fixture(autouse=True)
def _ask_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(purebpf.PerfEvent, "_counts_lost", True)  # what a fault may change
    features.forget()
    yield
    features.forget()


def failed(fault: Fault, name: str) -> tuple[Exception | None, set[tuple[str, int]]]:
    """What came of it when that call failed, and all that was made before."""
    features.forget()
    with replaced(Accountant(fault)) as substitute:
        assert isinstance(substitute, Accountant)
        try:
            use(name)
        except DOCUMENTED as caught:
            return caught, substitute.made
    return None, substitute.made


def is_probe(call: Call, name: str) -> bool:
    """Whether it has nothing to do with the object, but asks what the kernel can do."""
    if call.command == "BPF_LINK_CREATE":
        return call.field("link_create", "target_fd") == 0xFFFFFFFF
    if call.command != "BPF_PROG_LOAD":
        return False
    loaded = call.field("prog_load", "prog_name")
    assert isinstance(loaded, bytes)
    ours = {program[:15].encode() for program in OBJECTS[name].programs}
    return loaded.rstrip(b"\0") not in ours


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.needs(NEEDS[name])] if name in NEEDS else []),
                *([pytest.mark.nightly] if NEEDS.get(name, "").startswith("kprobe") else []),
            ],
        )
        for name in OBJECTS
    ],
)
def test_every_error_of_every_call(name: str) -> None:
    with replaced(Accountant()) as substitute:
        assert isinstance(substitute, Accountant)
        use(name)
    assert substitute.made
    made = set(substitute.made)
    before = probes.descriptors()
    for fault in faults(substitute.commands):
        error, others = failed(fault, name)
        made |= others
        assert probes.descriptors() == before, fault
        if isinstance(error, purebpf.KernelError):
            assert error.errno == fault.error, f"{fault}: {error}"
            assert errno_name(fault.error) in str(error), fault
        elif error is not None:
            assert str(error), fault
        call = substitute.calls[fault.number - 1]
        if fault.error in IRREPLACEABLE and fault.command in CREATING and not is_probe(call, name):
            assert error is not None, f"{fault}: nothing replaces memory or descriptors"
    assert not alive(made)


def test_the_whole_machine_refuses_from_some_call_on() -> None:
    """As when a limit is reached: everything that would undo the damage is refused too."""
    with replaced(Accountant()) as substitute:
        assert isinstance(substitute, Accountant)
        use("attach")
    before = probes.descriptors()
    for number in range(1, len(substitute.commands) + 1):
        features.forget()
        refusing = Accountant()
        refusing._decide = lambda call, number=number: (  # noqa: E731
            errno.ENOMEM if call.number >= number else None
        )
        with replaced(refusing), pytest.raises(DOCUMENTED):
            use("attach")
        assert probes.descriptors() == before, number
        assert not alive(refusing.made), number
