"""The fleet's store: bytes a row, what a hub costs, and how long questions take.

    python bench/fleet.py [--hosts 1000] [--hours 24] [--stacks 20000] [--rounds 3]

Makes the store of hosts that were never there: each runs 3 of 60 services, 738 rows a minute, with
stacks drawn by Zipf's law from those of each service, 23 frames deep on average; two builds,
of which a fifth of the stacks differ. One hour is made, and the others are links to it. Then
commands are run on it, one after the other, in processes of their own, and their answers for an
hour are compared with sums by numpy. For the hub, messages of 738 rows are decoded and stored as
it does it, in one process. Needs `purebpf[fleet]`, 3 GB of memory and 3 GB of /tmp.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import results
from results import Figure

from purebpf.results.formats.otlp import Entry, Sample, document
from purebpf.results.formats.otlp import Series as Sent
from purebpf.results.formats.otlp import Window as SentWindow
from purebpf.services.fleet.decode import decode
from purebpf.services.fleet.ids import frame_id, stack_id, text_id
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch, Frame, Series, Window
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.stores.store import Manifest
from purebpf.services.fleet.tables import (
    SCHEMAS,
    frames_table,
    series_table,
    windows_table,
    write_parquet,
)

ROOT = Path(__file__).parents[1]
_SERVICES, _ROWS, _DEPTH = 60, 738, 23
_PERIOD_NS = 52_631_579
_START_S = 1_795_305_600  # 2026-11-22T00:00 UTC
_BUILDS = ("abcdef012345", "fedcba543210")


class Fleet:
    """An hour of hosts in a store, and what its samples add up to."""

    def __init__(self, store: Directory, hosts: int, stacks: int) -> None:
        self.store, self.hosts, self._of_service = store, hosts, stacks
        self._chance = np.random.default_rng(1)
        self.by_service = np.zeros(_SERVICES, np.int64)
        self.rows = 0
        self.files: dict[str, list[str]] = {}
        self._rolled: list[pa.Table] = []

    def make(self) -> None:
        """Write the files of the first hour."""
        folder = "kind=cpu/date=2026-11-22/hour=00/part-1.parquet"
        frames = self._write_frames()
        self._write("samples", f"samples/{folder}", self._samples(), key="samples/cpu")
        self._write("rollup", f"rollup/{folder}", iter(self._rolled), key="rollup/cpu")
        date = "date=2026-11-22/hour=00/part-1.parquet"
        self._write("stacks", f"stacks/{date}", iter([self._stacks(frames)]))
        windows, series = self._windows()
        self._write("windows", f"windows/{date}", iter([windows]))
        self._write("series", f"series/{date}", iter([series]))
        text = Manifest(self.files, []).text()
        self.store.write("hours/2026-11-22T00.json", text.encode())

    def repeat(self, hours: int) -> None:
        """The other hours: links to the files of the first, but for its samples."""
        for hour in range(1, hours):
            date, number = f"2026-11-{22 + hour // 24}", f"{hour % 24:02}"
            files = {}
            for key, (name,) in self.files.items():
                if key == "samples/cpu":  # a day is asked of the roll-up
                    continue
                to = name.replace("date=2026-11-22/hour=00", f"date={date}/hour={number}")
                os.makedirs(os.path.dirname(self.store.path(to)), exist_ok=True)
                os.link(self.store.path(name), self.store.path(to))
                files[key] = [to]
            for key in ("stacks", "frames", "series"):  # a date has each once
                files.pop(key, None)
            text = Manifest(files, []).text()
            self.store.write(f"hours/{date}T{number}.json", text.encode())

    def _write(self, table: str, name: str, batches: Iterator[pa.Table], *, key: str = "") -> None:
        self.store.write_by(name, lambda file: write_parquet(batches, SCHEMAS[table], file))
        self.files[key or table] = [name]

    def _write_frames(self) -> np.ndarray:
        rows = [
            Frame(frame_id(f"function_{n}_of_a_library", f"lib{n % 300}.so", "", -1),
                  f"function_{n}_of_a_library", f"lib{n % 300}.so", "", -1, "user")
            for n in range(180_000)
        ]  # fmt: skip
        name = "frames/date=2026-11-22/hour=00/part-1.parquet"
        self._write("frames", name, iter([frames_table(rows)]))
        return np.array([row.frame for row in rows])

    def _stack_ids(self, service: int) -> np.ndarray:
        """Of both builds: a fifth of those of the second are others."""
        ids = [stack_id((service, build, n)) for build in (0, 1) for n in range(self._of_service)]
        both = np.array(ids).reshape(2, self._of_service)
        both[1] = np.where(np.arange(self._of_service) % 5 == 0, both[1], both[0])
        return both

    def _samples(self) -> Iterator[pa.Table]:
        """Service by service, each in the order of the table."""
        chance = self._chance
        names = np.array([f"host-{n:05}.example.com" for n in range(self.hosts)])
        weights = 1 / np.arange(1, self._of_service + 1) ** 1.05
        weights /= weights.sum()
        of_host = np.array([chance.permutation(_SERVICES)[:3] for _ in range(self.hosts)])
        self._of_host = of_host
        self._used: list[np.ndarray] = []
        for service in range(_SERVICES):
            hosts = np.flatnonzero((of_host == service).any(axis=1))
            size = len(hosts) * 60 * _ROWS // 3
            if not size:
                continue
            host, ts = chance.choice(hosts, size), chance.integers(0, 60, size)
            rank = chance.choice(self._of_service, size, p=weights)
            stacks = self._stack_ids(service)
            build = host % 2
            key = (stacks[build, rank], host, ts)
            order = np.lexsort((key[2], key[1], key[0]))
            stack, host, ts, build = (column[order] for column in (*key, build))
            first = np.flatnonzero(
                np.r_[True, (np.diff(stack) != 0) | (np.diff(host) != 0) | (np.diff(ts) != 0)]
            )
            count = np.diff(np.r_[first, size])
            stack, host, ts, build = (column[first] for column in (stack, host, ts, build))
            value = count * _PERIOD_NS
            self.by_service[service] = value.sum()
            self.rows += len(value)
            self._roll_up(service, stack, host, build, value, count)
            used = np.unique(stacks)
            self._used.append(np.c_[used, np.full(len(used), service)])
            series = np.array([text_id((name, str(service))) for name in names])
            yield pa.table(
                [
                    pa.array((_START_S + 60 * ts) * 1_000_000, pa.timestamp("us")),
                    pa.array(names[host]),
                    pa.array([f"service-{service}"] * len(value)),
                    pa.array(np.array(_BUILDS)[build]),
                    pa.array(series[host]),
                    pa.array(stack),
                    pa.array(value),
                    pa.array(np.full(len(value), _PERIOD_NS)),
                ],
                schema=SCHEMAS["samples"],
            )

    def _roll_up(  # noqa: PLR0917 - columns of one table
        self, service: int, stack: np.ndarray, host: np.ndarray, build: np.ndarray,
        value: np.ndarray, count: np.ndarray,
    ) -> None:  # fmt: skip
        for number, name in enumerate(_BUILDS):
            of = build == number
            ids, at = np.unique(stack[of], return_inverse=True)
            hosts = np.unique(at.astype(np.int64) * self.hosts + host[of]) // self.hosts
            columns = [
                pa.array([_START_S * 1_000_000] * len(ids), pa.timestamp("us")),
                pa.array([f"service-{service}"] * len(ids)),
                pa.array([name] * len(ids)),
                pa.array(ids),
                pa.array(np.bincount(at, value[of], len(ids)).astype(np.int64)),
                pa.array(np.bincount(at, count[of], len(ids)).astype(np.int64)),
                pa.array(np.bincount(hosts, minlength=len(ids)).astype(np.int64)),
            ]
            self._rolled.append(pa.table(columns, schema=SCHEMAS["rollup"]))

    def _stacks(self, frames: np.ndarray) -> pa.Table:
        used = np.concatenate(self._used)
        ids, service = used[np.argsort(used[:, 0])].T
        depths = self._chance.integers(_DEPTH - 15, _DEPTH + 16, len(ids))
        ends = np.r_[0, np.cumsum(depths)]
        own = len(frames) // _SERVICES  # functions that a service has
        chosen = self._chance.zipf(1.2, ends[-1]) % own + np.repeat(service * own, depths)
        chosen = frames[chosen]
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(chosen))
        return pa.table([pa.array(ids), lists.cast(SCHEMAS["stacks"].field("frames").type)],
                        schema=SCHEMAS["stacks"])  # fmt: skip

    def _windows(self) -> tuple[pa.Table, pa.Table]:
        rows, series = [], []
        for number in range(self.hosts):
            host = f"host-{number:05}.example.com"
            for minute in range(60):
                ts_us = (_START_S + 60 * minute) * 1_000_000
                rows.append(
                    Window(ts_us, host, "cpu", text_id((host, str(minute))), "0123abcd",
                           60 * 10**9, _PERIOD_NS, 2280, 2279, (), 12_000, 10**7, 10**8, 10**8,
                           0, 0, 10**6)
                )  # fmt: skip
            for service in self._of_host[number]:
                number_of = text_id((host, str(service)))
                series.append(
                    Series(number_of, host, f"service-{service}", _BUILDS[number % 2],
                           *[""] * 6, ())
                )  # fmt: skip
        return windows_table(rows), series_table(series)


def hub_cost(store: Directory) -> tuple[float, float]:
    """CPU milliseconds of a window of 738 rows: decoded and stored with 79 others; its kB."""
    chance = random.Random(1)
    frames = [Entry(f"function_{n}", f"lib{n % 40}.so", "user") for n in range(800)]
    pool = [tuple(chance.sample(frames, chance.randint(8, 38))) for _ in range(1200)]
    sent = []
    for number in range(80):
        services = [
            Sent((("service.name", f"s{n}"), ("host.name", f"h{number}")),
                 {Sample(f"thread{i % 3}", stack): chance.randint(1, 9)
                  for i, stack in enumerate(chance.sample(pool, _ROWS // 3))})
            for n in range(3)
        ]  # fmt: skip
        window = SentWindow("samples", "count", _START_S * 10**9, 60 * 10**9, _PERIOD_NS, (),
                            number.to_bytes(16, "big"))  # fmt: skip
        sent.append(document(window, services))
    before = time.process_time()
    batch = Batch({})
    for data in sent:
        for delivery in decode(data, now_ns=time.time_ns()):
            batch.add(delivery)
    land(store, batch, new_batch_id())
    spent = time.process_time() - before
    return 1000 * spent / len(sent), sum(map(len, sent)) / len(sent) / 1000


def ask(store: Path, *words: str) -> tuple[float, float, str]:
    """Seconds, most MB of memory, and what a command prints."""
    command = [sys.executable, "-m", "purebpf", "fleet", *words, "--store", str(store)]
    done = subprocess.run([sys.executable, "-c", _MEASURED, *command], capture_output=True,
                          text=True, cwd=ROOT, check=False)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed")
    took, most = done.stderr.split()[-2:]
    return float(took), int(most) / 1000, done.stdout


# a process inherits the most memory of what started it, across fork(2) and execve(2)
_MEASURED = """
import resource, subprocess, sys, time
before = time.perf_counter()
status = subprocess.run(sys.argv[1:]).returncode
took = time.perf_counter() - before
print(took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
raise SystemExit(status)
"""


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="purebpf-fleet-"))
    try:
        yield from _measure(options, folder)
    finally:
        shutil.rmtree(folder)


def _measure(options: argparse.Namespace, folder: Path) -> Iterator[Figure]:
    costs = [hub_cost(Directory(str(folder / "hub"))) for _ in range(options.rounds)]
    spent, size = min(costs)
    yield Figure("hub: CPU of a window of 738 rows", spent, "ms", limit=60)
    yield Figure("hub: 1,000 hosts a minute", spent / 60 * 100, "% of a CPU", limit=100)
    yield Figure("that window, not packed", size, "kB")
    store = folder / "store"
    fleet = Fleet(Directory(str(store)), options.hosts, options.stacks)
    fleet.make()
    sizes = {key: os.path.getsize(store / name) for key, (name,) in fleet.files.items()}
    print(f"{fleet.rows} rows of {options.hosts} hosts:", sizes, file=sys.stderr)
    yield Figure("samples", sizes["samples/cpu"] / fleet.rows, "bytes a row", limit=2.5)
    day = 24 * (sizes["samples/cpu"] + sizes["rollup/cpu"]) / options.hosts / 1e6
    yield Figure("a host-day, with its roll-up", day, "MB", limit=3)
    hour = ("--since", "2026-11-22T00:00", "--until", "2026-11-22T01:00")
    statement = "select service, sum(value)::bigint from samples group by service"
    lines = ask(store, "sql", statement, *hour)[2].splitlines()[1:]
    sums = dict(line.split("\t") for line in lines)
    if {name: int(value) for name, value in sums.items()} != {
        f"service-{n}": int(value) for n, value in enumerate(fleet.by_service) if value
    }:
        raise SystemExit("the sums of the store are not those of the samples")
    fleet.repeat(options.hours)
    ended = f"2026-11-{22 + options.hours // 24}T{options.hours % 24:02}:00"
    day_range = ("--since", "2026-11-22T00:00", "--until", ended)
    page = str(folder / "page.html")
    builds = [f"version={build},service=service-7" for build in _BUILDS]
    of_one = ("--host", "host-00007.example.com")
    questions: tuple[tuple[str, float, tuple[str, ...]], ...] = (
        (f"flame graph of a service, {options.hours} h", 2,
         ("flamegraph", "--service", "service-7", *day_range, "-o", page)),
        (f"top functions of all, {options.hours} h", 6, ("top", *day_range)),
        ("top functions of one host, 1 h", 1, ("top", *of_one, *hour)),
        ("top functions of all, 1 h", 6, ("top", *hour)),
        ("time line by service, 1 h", 6, ("timeline", *hour)),
        (f"time line by service, {options.hours} h", 6, ("timeline", *day_range)),
        ("two builds of a service, 1 h", 2, ("diff", "--a", builds[0], "--b", builds[1], *hour)),
        ("what changed in them, with errors", 2,
         ("regressions", "--a", builds[0], "--b", builds[1], *hour)),
    )  # fmt: skip
    most = 0.0
    for what, limit, words in questions:
        taken = [ask(store, *words) for _ in range(options.rounds)]
        most = max(most, *(memory for _, memory, _ in taken))
        yield Figure(what, min(took for took, _, _ in taken), "s", limit=limit)
    yield Figure("stacks of a day", sizes["stacks"] / 1e6, "MB")
    yield Figure("most memory of a question", most, "MB", limit=1000)


if __name__ == "__main__":
    made = results.parser(__doc__, 3)
    made.add_argument("--hosts", type=int, default=1000)
    made.add_argument("--hours", type=int, default=24)
    made.add_argument("--stacks", type=int, default=20_000, help="of each service and build")
    raise SystemExit(results.run(measure, made.parse_args()))
