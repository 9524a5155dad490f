"""The plugin of pytest, in runs of pytest of its own."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.testing.packets import Packets

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests/data"
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")

pytestmark = pytest.mark.needs("bpf", "perf_event")

TESTS = f"""
import pytest
import purebpf

@pytest.mark.bpf
def test_marked():
    purebpf.load({str(DATA / "load_counter.bpf.o")!r}).close()

def test_with_the_fixture(bpf_load):
    obj = bpf_load({str(DATA / "load_counter.bpf.o")!r})
    other = bpf_load(obj.spec, log_level=1)
    test_with_the_fixture.loaded = obj, other
    assert not obj.closed and not other.closed

def test_pure(packets):
    assert packets.udp(b"x").endswith(b"x")
    closed = [obj.closed for obj in getattr(test_with_the_fixture, "loaded", ())]
    assert all(closed)
    print("closed", len(closed))
"""

REFUSED = f"""
import purebpf

def test_refused(bpf_load):
    spec = purebpf.read_object({str(DATA / "load_refused.bpf.o")!r})
    try:
        bpf_load(spec.only("null_pointer"))
    except purebpf.VerifierError as error:
        raise RuntimeError("no object") from error
"""


def run_pytest(
    folder: Path, tests: str, *options: str, before: tuple[str, ...] = ()
) -> tuple[int, str]:
    (folder / "test_tool.py").write_text(tests)
    command = [*before, sys.executable, "-m", "pytest", "-p", "purebpf.testing.plugin"]
    command += ["-p", "no:cacheprovider", "--strict-markers", *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    return done.returncode, done.stdout + done.stderr


def test_what_a_test_loads_is_closed_behind_it(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path, TESTS, "-s")
    assert (status, "3 passed" in said, "closed 2" in said) == (0, True, True), said


@pytest.mark.needs("setpriv")
def test_without_privileges_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path, TESTS, before=WITHOUT_CAPABILITIES)
    assert (status, "1 passed, 2 skipped" in said) == (0, True), said
    reason = r"purebpf: 2 skipped: program type TRACEPOINT: no: bpf\(BPF_PROG_LOAD\) .*EPERM"
    assert re.search(reason, said), said


@pytest.mark.needs("setpriv")
def test_where_they_are_required_a_skip_is_a_failure(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path, TESTS, "--bpf-required", before=WITHOUT_CAPABILITIES)
    assert status == 1
    assert re.search("[12] failed, 1 passed", said), said
    assert "--bpf-required: program type TRACEPOINT: no" in said


def test_a_refused_program_shows_the_log_in_the_report(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path, REFUSED)
    assert status == 1
    log = said.partition("verifier log")[2]
    assert "R0 invalid mem access 'map_value_or_null'" in log, said


def test_the_plugin_is_found_by_its_entry_point() -> None:
    assert "purebpf.testing.plugin = purebpf.testing.plugin" in (ROOT / "setup.cfg").read_text()
    code = "import sys, purebpf.testing.plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    names = [name for name in done.stdout.split() if name.startswith("purebpf.")]
    assert not [name for name in names if name.startswith(("purebpf.loader", "purebpf.btf"))]


def test_this_kernel_takes_the_packets_and_none_with_a_wrong_sum() -> None:
    address = "::1"  # packets of IPv4 from the network to 127.0.0.1 are dropped, as martians
    with (
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire,
    ):
        try:
            receiver.bind((address, 0))
            wire.bind(("lo", 0))
        except OSError as error:
            pytest.skip(f"loopback of {address}: {error}")
        packets = Packets(source=address, destination=address, destination_mac=bytes(6))
        port = receiver.getsockname()[1]
        right = packets.udp(b"right", destination_port=port)
        wire.send(right[:-1] + b"?")
        wire.send(right)
        receiver.settimeout(5)
        assert receiver.recv(100) == b"right"
