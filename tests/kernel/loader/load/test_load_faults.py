"""When the Nth system call fails: a documented error or a success, and nothing left behind.

Descriptors are compared by the fixture of every live test; maps, programs and links are the
machine's, so the ids that appear while a call fails are compared here with what is alive after.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.features import features
from purebpf.syscall import bpf
from purebpf.syscall.backend import replaced
from tests.support import probes
from tests.support.host.backends import Interposer, failing
from tests.support.host.gone import is_gone

pytestmark = pytest.mark.needs("bpf", "tracefs", "vmlinux_btf")

DATA = Path(__file__).parents[3] / "data"
ERRORS = (errno.EPERM, errno.EINVAL, errno.ENOMEM, errno.EMFILE, errno.E2BIG, errno.EAGAIN)
DOCUMENTED = (purebpf.KernelError, purebpf.NotSupportedError)

OBJECTS = {
    "counter": purebpf.read_object(DATA / "load_counter.bpf.o"),
    "attach": purebpf.read_object(DATA / "load_attach.bpf.o").only("on_tracepoint", "on_raw"),
    "tail": purebpf.read_object(DATA / "load_tail.bpf.o"),
    "btf": purebpf.read_object(DATA / "load_attach.bpf.o").only("on_btf"),
}


def use(spec: purebpf.ObjectSpec) -> None:
    with purebpf.load(spec) as obj:
        obj.attach()
        dict(obj.globals)


def calls_needed(spec: purebpf.ObjectSpec) -> int:
    with replaced(Interposer()) as substitute:
        use(spec)
    return len(substitute.calls)


@pytest.fixture(autouse=True)
def _ask_anew():
    features.forget()
    yield
    features.forget()


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", OBJECTS)
def test_any_call_may_fail(name, error):
    spec = OBJECTS[name]
    before = probes.descriptors()
    errors = []
    for number in range(1, calls_needed(spec) + 1):
        features.forget()
        with replaced(failing(number, error)):
            try:
                use(spec)
            except DOCUMENTED as caught:
                errors.append(str(caught))
        assert probes.descriptors() == before, f"after call {number}"
    assert all(errors)
    if error in (errno.ENOMEM, errno.EMFILE):
        assert len(errors) > 3  # nothing replaces memory or descriptors


@pytest.mark.parametrize(
    "error", [errno.EPERM, errno.EINVAL, errno.ENOMEM], ids=errno.errorcode.get
)
@pytest.mark.parametrize("name", OBJECTS)
def test_every_call_from_some_point_on_may_fail(name, error):
    spec = OBJECTS[name]
    before = probes.descriptors()
    errors = []
    for number in range(1, calls_needed(spec) + 1):
        features.forget()
        substitute = Interposer(
            lambda call, number=number: error if call.number >= number else None
        )
        with replaced(substitute):
            try:
                use(spec)
            except DOCUMENTED as caught:
                errors.append(str(caught))
        assert probes.descriptors() == before, f"from call {number} on"
    assert errors
    assert all(errors)


@pytest.mark.needs("perf_event_links")
def test_programs_maps_and_links_are_gone_afterwards():
    made: dict[str, set[int]] = {"program": set(), "map": set(), "link": set()}
    spec = OBJECTS["attach"]
    with purebpf.load(spec) as obj:
        links = obj.attach()
        made["program"] = {program.info.id for program in obj.programs.values()}
        made["map"] = {each.info.id for each in obj.maps.values()}
        made["link"] = {link.info.id for link in links}
    assert [len(ids) for ids in made.values()] == [2, 2, 2]
    openers = {
        "program": bpf.prog_get_fd_by_id,
        "map": bpf.map_get_fd_by_id,
        "link": bpf.link_get_fd_by_id,
    }
    for kind, ids in made.items():
        for number in ids:
            assert is_gone(openers[kind], number), f"{kind} {number}"
