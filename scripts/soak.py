"""Run the profiler, a ring reader and the live page for a long time; print what memory they take.

    sudo .venv/bin/python scripts/soak.py                 each for 10 minutes
    sudo .venv/bin/python scripts/soak.py --seconds 180 ring

`windows` is one profiler that runs on and forgets each window (purebpf.tools.profile.windows). The
profiler is restarted every few seconds, as a service that profiles now and then would do it,
while processes come and go; the reader drains a ring buffer that is never empty for long. Both
run in this process. `serve` is a command, `profile --serve`, with 20 clients that take snapshots,
some that watch, and 200 that send a request without a token, byte by byte. It profiles one process
with few stacks: what is counted must not grow either, or it would hide a leak.
`machine` is the same of everything; what it takes grows with the stacks and processes seen, up to
--hash-storage-size and --stack-storage-size of the command. A leak shows in the resident set
(VmRSS), the descriptors or the mappings. Exit status 1 when the second half grew by more than
`--allowed-kib`.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import CALL, EXIT, Instruction, pack
from purebpf.loader.maps.map import Map
from purebpf.loader.rings.ring_buffer import RingBuffer
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.tools.profile import ProfileOptions, Profiler
from purebpf.tools.profile.windows import WindowProfiler

_RING_BYTES = 1 << 18
_BURST = 1000
"""Records of 8 bytes that are sent at once; the ring holds sixteen times as many."""

_ROUND_S = 2.0
_REPORTS = 20


class Sample(NamedTuple):
    """This process, at a time: seconds since the start, KiB resident, descriptors, mappings."""

    time_s: float
    rss_kib: int
    descriptors: int
    mappings: int


def measured(start: float, pid: int) -> Sample:
    """How it is now."""
    gc.collect()
    proc = Path(f"/proc/{pid}")
    rows = dict(
        line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line
    )
    mappings = len((proc / "maps").read_text().splitlines())
    descriptors = len(os.listdir(proc / "fd"))
    return Sample(time.monotonic() - start, int(rows["VmRSS"].split()[0]), descriptors, mappings)


def profiler_rounds() -> Iterator[int]:
    """Profile the machine in rounds, while short processes run; yields the samples so far."""
    samples = 0
    while True:
        with Profiler(ProfileOptions(frequency=199)) as profiler:
            end = time.monotonic() + _ROUND_S
            while time.monotonic() < end:
                subprocess.run(["true"], check=True)
                sum(range(100_000))
            samples += profiler.stop().total
        yield samples


def window_rounds() -> Iterator[int]:
    """Profile the machine by windows, while short processes run; yields the samples so far."""
    samples = 0
    with WindowProfiler(ProfileOptions(frequency=19)) as profiler:
        while True:
            end = time.monotonic() + _ROUND_S
            while time.monotonic() < end:
                subprocess.run(["true"], check=True)
                profiler.wait(at_most_s=0)
            samples += profiler.window().total
            yield samples


def _program(ring: int) -> Descriptor:
    """Sends 8 bytes to the ring, each time that it runs."""
    mov, mov_reg, add, store, load_wide = 0xB7, 0xBF, 0x07, 0x7A, 0x18
    code = [
        Instruction(store, 10, 0, -8, 7),
        Instruction(load_wide, 1, 1, 0, ring),
        Instruction(0, 0, 0, 0, 0),
        Instruction(mov_reg, 2, 10, 0, 0),
        Instruction(add, 2, 0, 0, -8),
        Instruction(mov, 3, 0, 0, 8),
        Instruction(mov, 4, 0, 0, 0),
        Instruction(CALL, 0, 0, 0, bpf_func_id.BPF_FUNC_ringbuf_output),
        Instruction(mov, 0, 0, 0, 0),
        Instruction(EXIT, 0, 0, 0, 0),
    ]
    return bpf.prog_load(bpf_prog_type.BPF_PROG_TYPE_SCHED_CLS, pack(code), "GPL")


def ring_rounds() -> Iterator[int]:
    """Send and read records; yields how many were read so far."""
    spec = MapSpec("soak", bpf_map_type.BPF_MAP_TYPE_RINGBUF, 0, 0, _RING_BYTES)
    records = 0
    with (
        Map.create(spec) as made,
        _program(made.fileno()) as program,
        RingBuffer(made, bytes) as ring,
    ):
        while True:
            end = time.monotonic() + _ROUND_S
            while time.monotonic() < end:
                bpf.prog_test_run(program.fileno(), data_in=bytes(64), repeat=_BURST)
                records_read = sum(1 for _ in ring.read(0))
                if records_read != _BURST:
                    raise SystemExit(f"{records_read} records came of {_BURST}")
                records += records_read
            yield records


_BUSY = "import time\nwhile True:\n    sum(range(20_000))\n    time.sleep(0.01)\n"


def serve_rounds(*, machine: bool = False) -> Iterator[tuple[int, int]]:
    """A live page among clients; yields the snapshots so far, and the process to look at."""
    words = [sys.executable, "-P", "-m", "purebpf", "profile", "--serve", "-F", "199"]
    with subprocess.Popen([sys.executable, "-c", _BUSY]) as target:
        try:
            target_words = [] if machine else ["-p", str(target.pid)]
            yield from _serve_rounds([*words, *target_words, "-o", os.devnull])
        finally:
            target.kill()


def _serve_rounds(words: list[str]) -> Iterator[tuple[int, int]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stderr=pipe, text=True) as command:
        assert command.stderr is not None
        url = re.search(r"http://\S+", command.stderr.readline())
        if url is None:
            raise SystemExit("profile --serve printed no address")
        snapshots: list[int] = []
        over = threading.Event()
        clients = [
            *[threading.Thread(target=_take, args=(url[0], snapshots, over)) for _ in range(_TAKE)],
            *[threading.Thread(target=_watch, args=(url[0], over)) for _ in range(_WATCH)],
            threading.Thread(target=_drip, args=(url[0], over)),
        ]
        for client in clients:
            client.start()
        try:
            while command.poll() is None:
                end = time.monotonic() + _ROUND_S
                while time.monotonic() < end:
                    subprocess.run(["true"], check=True)
                    time.sleep(0.02)
                yield len(snapshots), command.pid
            raise SystemExit("profile --serve ended by itself")
        finally:
            over.set()
            for client in clients:
                client.join()
            command.send_signal(signal.SIGTERM)  # SIGINT may be ignored in the background
            command.communicate()


def _take(url: str, snapshots: list[int], over: threading.Event) -> None:
    """Download a snapshot a second, or as often as the command answers."""
    kinds = itertools.cycle(("snapshot.html", "snapshot.json"))
    while not over.wait(1):
        with suppress(OSError):  # it may be too busy, and say so
            address = url.replace("?", f"{next(kinds)}?")
            with urllib.request.urlopen(address, timeout=30) as response:
                snapshots.append(len(response.read()))


def _watch(url: str, over: threading.Event) -> None:
    """Read events as a page does, for ten seconds at a time."""
    while not over.wait(1):
        address = url.replace("?", "events?")
        with suppress(OSError), urllib.request.urlopen(address, timeout=30) as stream:
            end = time.monotonic() + 10
            while time.monotonic() < end and stream.readline() and not over.is_set():
                pass


def _drip(url: str, over: threading.Event) -> None:
    """Keep many connections open that never send a whole request, or try to."""
    where = urlsplit(url)
    address = (where.hostname or "", where.port or 0)
    open_: list[socket.socket] = []
    while not over.wait(0.05):
        for conn in list(open_):
            try:
                conn.send(b"a")
            except OSError:
                conn.close()
                open_.remove(conn)
        with suppress(OSError):
            for _ in range(min(_DRIP - len(open_), 20)):
                open_.append(socket.create_connection(address, timeout=5))
                open_[-1].send(b"GET / HTTP/1.1\r\nX: ")
    for conn in open_:
        conn.close()


_TAKE, _WATCH, _DRIP = 20, 4, 200

SOAKS: dict[str, tuple[Callable[[], Iterator[int | tuple[int, int]]], str]] = {
    "profiler": (profiler_rounds, "samples"),
    "windows": (window_rounds, "samples"),
    "ring": (ring_rounds, "records"),
    "serve": (serve_rounds, "snapshots"),
    "machine": (partial(serve_rounds, machine=True), "snapshots"),
}


_WITH_CLIENTS = ("serve", "machine")


def soak(name: str, seconds: float, allowed_kib: int) -> bool:
    """Run one, print its figures, and say whether they stayed flat."""
    rounds, unit = SOAKS[name]
    print(f"{name}, for {seconds:.0f} s\n{'s':>6} {'RSS KiB':>9} {'fds':>5} {'maps':>5}  {unit}")
    start = time.monotonic()
    taken: list[Sample] = []
    next_report = 0.0
    for round_result in rounds():
        done, pid = round_result if isinstance(round_result, tuple) else (round_result, os.getpid())
        now = time.monotonic() - start
        if now >= next_report or now >= seconds:
            taken.append(measured(start, pid))
            at, rss, descriptors, mappings = taken[-1]
            print(f"{at:6.0f} {rss:9} {descriptors:5} {mappings:5}  {done}", flush=True)
            next_report += seconds / _REPORTS
        if now >= seconds:
            break
    middle = taken[len(taken) // 2]
    grown = taken[-1].rss_kib - middle.rss_kib
    more = taken[-1].descriptors - middle.descriptors
    print(f"second half: {grown:+} KiB, {more:+} descriptors\n")
    return grown <= allowed_kib and (name in _WITH_CLIENTS or more == 0)  # clients come and go


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "which", nargs="*", metavar="{profiler,windows,ring,serve,machine}", help="default: all"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="for each (default: 600)")
    parser.add_argument("--allowed-kib", type=int, default=2048)
    options = parser.parse_args()
    which = options.which or list(SOAKS)
    if unknown := [name for name in which if name not in SOAKS]:
        parser.error(f"no such soak: {', '.join(unknown)}")
    flat = [soak(name, options.seconds, options.allowed_kib) for name in which]
    return 0 if all(flat) else 1


if __name__ == "__main__":
    sys.exit(main())
