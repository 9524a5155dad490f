"""Answers stay small where the store is large: the frames of all stacks are not in memory."""

from __future__ import annotations

import random
import time
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from purebpf.services.fleet import cut as cutting
from purebpf.services.fleet.answers import Numbered
from purebpf.services.fleet.rows import Frame, Series, Window
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.directory import Directory
from purebpf.services.fleet.stores.store import Manifest
from purebpf.services.fleet.tables import (
    SCHEMAS,
    frames_table,
    series_table,
    windows_table,
    write_parquet,
)
from purebpf.services.fleet.web import app
from purebpf.services.fleet.web.fields import Asked
from purebpf.services.fleet.web.turns import BusyError
from purebpf.services.fleet.web.worker import Worker

HOUR = "2026-11-22T00"  # the question is about a half of it: a roll-up has whole ones
START_US = 1_795_305_600_000_000
STACKS, DEPTH, FRAMES, FEW = 150_001, 23, 40_009, 101
MEMORY = "24MB"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Directory:
    """An hour of a service with many stacks, and of one with a few of them."""
    made = Directory(str(tmp_path_factory.mktemp("store")))
    chance = np.random.default_rng(1)
    frames = np.sort(chance.integers(1, 1 << 62, FRAMES))
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(STACKS + 1) * DEPTH, pa.int32()),
        pa.array(chance.choice(frames, STACKS * DEPTH)),
    )
    stacks = np.sort(chance.choice(1 << 40, STACKS, replace=False))
    of_few = chance.choice(stacks, FEW, replace=False)
    both = np.concatenate((of_few, stacks))
    services = ["few"] * FEW + ["many"] * STACKS
    size = len(both)
    samples = [
        pa.array(np.full(size, START_US), pa.timestamp("us")),
        pa.array(["host"] * size),
        pa.array(services),
        pa.array([""] * size),
        pa.array(np.full(size, 1)),
        pa.array(both),
        pa.array(np.full(size, 10_000_000)),
        pa.array(np.full(size, 10_000_000)),
    ]
    window = Window(START_US, "host", "cpu", 1, "1", 60_000_000_000, 10_000_000, size, size, (),
                    *(0,) * 7)  # fmt: skip
    tables = {
        "samples/cpu": ("samples/kind=cpu", pa.table(samples, schema=SCHEMAS["samples"])),
        "stacks": ("stacks", pa.table([stacks, lists], schema=SCHEMAS["stacks"])),
        "frames": (
            "frames",
            frames_table(Frame(int(n), f"function_{n}", "lib.so", "", -1, "user") for n in frames),
        ),
        "windows": ("windows", windows_table([window])),
        "series": ("series", series_table([Series(1, "host", "few", *[""] * 7, ())])),
    }
    files = {}
    for key, (folder, table) in tables.items():
        name = f"{folder}/date=2026-11-22/hour=00/part-1.parquet"
        schema = table.schema
        made.write_by(name, lambda file, t=table, s=schema: write_parquet([t], s, file))  # type: ignore[misc]
        files[key] = [name]
    made.write(f"hours/{HOUR}.json", Manifest(files, []).text().encode())
    return made


def selection(service: str) -> Selection:
    return Selection(START_US, START_US + 1_800_000_000, "cpu", (("service", service),))


@pytest.mark.parametrize(("service", "stacks"), [("few", FEW), ("many", STACKS)])
def test_functions_of_a_store_with_many_stacks(store: Directory, service: str, stacks: int) -> None:
    with Worker(store, MEMORY, MEMORY) as worker:
        functions = worker.ask(selection(service), by_host=True).functions(30)
    assert functions.value == stacks * 10_000_000
    assert len(functions.rows) >= 30


def test_a_page_of_a_store_with_many_stacks(store: Directory) -> None:
    with Worker(store, "48MB", "48MB") as worker:
        profile = app._profile(worker, selection("many"), Asked())
    assert profile.total == STACKS * 10_000_000


def test_who_leaves_does_not_wait_for_a_large_page(store: Directory) -> None:
    """A page is not asked on in Python when its reader has gone."""
    with Worker(store, "48MB", "48MB") as worker:
        question = worker.ask(selection("many"))
        stacks = question.heaviest(20_000)
        worker.gave_up = True
        with pytest.raises(BusyError):
            cutting.cut(stacks, check=worker.check)
        with pytest.raises(BusyError):
            question.heaviest(20_000, worker.check)


def test_stacks_without_common_parts_are_cut_in_little_memory() -> None:
    """The tree of all their frames would have a million nodes."""
    chance = random.Random(1)
    stacks = [
        Numbered("s", tuple(chance.randrange(9973) for _ in range(50)), 1) for _ in range(20_011)
    ]
    tracemalloc.start()
    try:
        began = time.process_time()
        (few,) = cutting.cut(stacks)
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
        assert time.process_time() - began < 20
    finally:
        tracemalloc.stop()
    assert sum(stack.value for stack in few) == len(stacks)
