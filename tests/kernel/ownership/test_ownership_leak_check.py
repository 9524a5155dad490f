"""The check that every live test ends with finds what it is there to find."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.syscall import bpf
from tests.support import expected, probes, traces

pytestmark = pytest.mark.needs("bpf")

ROOT = Path(__file__).resolve().parents[3]
TRACING = Path("/sys/kernel/tracing")

_LEAKING = """
import os
import pytest

@pytest.mark.needs("bpf")
def test_leaks():
    os.dup(2)

@pytest.mark.needs("guest")
def test_needs():
    pass
"""


def new(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """What there is now, of what this test makes, that there was not before."""
    return {kind: names - before[kind] for kind, names in traces.left().items()}


def test_maps_and_mounts_and_pins(bpffs: Path) -> None:
    before = traces.left()
    with bpf.map_create(2, 4, 4, 1) as array:
        assert new(before)["map"]
        bpf.obj_pin(array.fileno(), str(bpffs / "pinned"))
    assert str(bpffs) in before["bpf mount"]
    assert str(bpffs / "pinned") in new(before)["pin"]
    (bpffs / "pinned").unlink()
    assert str(bpffs / "pinned") not in traces.left()["pin"]


@contextmanager
def _removed(path: Path) -> Iterator[Path]:
    try:
        yield path
    finally:
        path.rmdir()


@pytest.mark.needs("cgroup2")
def test_a_cgroup_left_behind_is_noticed() -> None:
    before = traces.left()
    root = next(place for place, kind in probes.mounts() if kind == "cgroup2")
    with _removed(Path(root, f"purebpf-leak-check-{os.getpid()}")) as group:
        group.mkdir()
        assert str(group) in new(before)["cgroup"]
    assert str(group) not in traces.left()["cgroup"]


def append(file: Path, line: str) -> None:
    events = os.open(file, os.O_WRONLY | os.O_APPEND)  # which Path.open would seek in
    try:
        os.write(events, f"{line}\n".encode())
    finally:
        os.close(events)


@pytest.mark.needs("tracefs", "guest")
def test_a_tracefs_event_left_behind_is_noticed() -> None:
    before = traces.left()
    events = TRACING / "uprobe_events"
    place = f"{os.path.realpath(sys.executable)}:0x1000"
    append(events, f"p:purebpf_leak/check {place}")  # truncating would remove everybody's
    found = new(before)["tracefs event"]
    append(events, "-:purebpf_leak/check")
    assert any("purebpf_leak/check" in each for each in found)
    assert not new(before)["tracefs event"]


@pytest.mark.needs("guest")
def test_a_qdisc_left_behind_is_noticed() -> None:
    from pyroute2 import IPRoute

    before = traces.left()
    with IPRoute() as route:
        (loopback,) = route.link_lookup(ifname="lo")
        try:
            route.tc("add", "pfifo", loopback, "1:", limit=10)
        except Exception as error:  # a kernel without that module
            pytest.fail(str(error))
        found = new(before)["qdisc"]
        route.tc("del", "pfifo", loopback, "1:")
    assert any(f"interface {loopback} handle 10000" in each for each in found)
    assert not new(before)["qdisc"]


def _pytest(folder: Path, **environment: str) -> str:
    """Run the tests above in a tree of their own, with this tree's conftest."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = needs\n")
    file = folder / "tests" / "kernel" / "test_leaking.py"
    file.parent.mkdir(parents=True)
    file.write_text(_LEAKING)
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    kept = {name: value for name, value in os.environ.items() if name != "PUREBPF_KERNEL"}
    done = subprocess.run(
        [*line, str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | environment,
    )
    return done.stdout + done.stderr


@pytest.mark.any_kernel
def test_a_test_that_leaks_fails(tmp_path: Path) -> None:
    text = _pytest(tmp_path)
    assert "left behind: ['fd " in text
    assert "1 skipped" in text
    assert "1  guest: sysctls and CPUs are only switched in the guests" in text


@pytest.mark.any_kernel
def test_a_need_that_is_required_fails(tmp_path: Path) -> None:
    assert "needs guest, required here" in _pytest(tmp_path, PUREBPF_REQUIRE="kernel")


@pytest.mark.any_kernel
def test_a_kernel_without_a_row_is_refused(tmp_path: Path) -> None:
    text = _pytest(tmp_path, PUREBPF_KERNEL="2.6")
    assert "PUREBPF_KERNEL=2.6 has no row in tests/support/expected.py" in text


def test_what_a_kernel_is_known_to_have_may_not_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests import conftest

    monkeypatch.setenv("PUREBPF_KERNEL", "6.1")
    monkeypatch.delenv("PUREBPF_REQUIRE", raising=False)
    assert "bpf" in expected.needs_of("6.1")
    with pytest.raises(
        pytest.fail.Exception, match=r"needs bpf, which Linux 6\.1 is known to have"
    ):
        conftest._fail_if_required("bpf", "it went away")
    conftest._fail_if_required(
        "bpftrace", "it is not installed"
    )  # the test does not expect it there
