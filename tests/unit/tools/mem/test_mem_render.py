"""What mem prints and counts, from sites that the kernel could have added up."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.cli.destination import ResultOptions
from purebpf.formats import FORMATS
from purebpf.observe.instruments.memory_tracer import Site
from purebpf.observe.saved import profile_loader
from purebpf.results import Profile
from purebpf.results.build.stored_stacks import Stacks
from purebpf.results.formats import writer
from purebpf.results.model.units import bytes_in_unit
from purebpf.symbols.frame import Address, Frame
from purebpf.tools.mem.loss import losses
from purebpf.tools.mem.profiles import MemoryUse, fill, since, totals
from purebpf.tools.mem.render import render
from purebpf.tools.mem.request import SHOWN, MemOptions

SITES = [
    Site("shop", 7, "malloc", 17, 100, 51_200, 40, 20_480, 10, 5_120),
    Site("shop", 7, "malloc", 18, 1, 8, 1, 8, 0, 0),
    Site("shop", 7, "malloc", 17, 10, 5_120, 0, 0, 0, 0),  # the same stack, finished later
    Site("shop", 7, "mmap", 17, 3, 12_288, 0, 0, 0, 0),
    Site("shop", 7, "reserved", 17, 1, 1 << 26, 0, 0, 0, 0),
    Site("shop", 7, "minor fault", 17, 41, 0, 0, 0, 0, 0),
    Site("shop", 7, "major fault", 18, 2, 0, 0, 0, 0, 0),
]
STATS = dict.fromkeys(
    (
        *("sites_full", "sites_busy", "allocations_full", "allocations_busy", "calls_full"),
        *(
            "returns_missed",
            "in_flight",
            "places_taken",
            "faults_missed",
            "recursion_misses",
            "children_missed",
            "replaced",
            "heaps_destroyed",
            "texts_copied",
        ),
        *("outside_namespace", "allocations", "growths", "faults", "stacks_full"),
        *("stacks_crowded", "stacks_busy", "user_truncated", "kernel_truncated"),
        *("user_unavailable", "kernel_unavailable", "sizes_cut"),
    ),
    0,
)
GOLDEN = """\
not freed        30.7 kB  in 60 allocations
allocated        56.3 kB  in 111 allocations, 41 freed  (--show allocated)
grown            12.3 kB  in 3 mmap or brk calls  (--show grown)
reserved         67.1 MB  of addresses without memory
page faults           43  2 from disk  (--show faults)

not freed, by function:

    self            total         function
 100.0 %          100.0 %         grows [shop]
   0.0 %          100.0 %         main [shop]

1 of 1 stack, 100 % of 30.7 kB, the heaviest last:

    grows [shop]
    main [shop]
    -                shop (7)
        100.0 %  30.7 kB

"""


class Names:
    """Two functions of one file."""

    def kernel_stack(self, addresses: object) -> tuple[Frame, ...]:
        raise AssertionError(addresses)

    def user_stack(self, pid: int, addresses: object, comm: str | None = None) -> tuple[Frame, ...]:
        assert (pid, comm) == (7, "shop")
        return tuple([Frame(name, 0, "/bin/shop", 0, "user") for name in addresses])  # type: ignore[attr-defined]


class Anyone(Names):
    """The same in every process."""

    def user_stack(self, pid: int, addresses: object, comm: str | None = None) -> tuple[Frame, ...]:
        assert pid, comm
        return tuple([Frame(name, 0, "/x", Address(16), "user") for name in addresses])  # type: ignore[attr-defined]


def made() -> MemoryUse:
    stacks = Stacks({17: ("grows", "main"), 18: ("once", "main")}, Names())  # type: ignore[dict-item]
    profiles = []
    for shown in SHOWN:
        unit = "faults" if shown == "faults" else "bytes"
        profile = Profile("mem", unit=unit, about=totals(SITES))
        fill(profile, shown, SITES, stacks, lambda _: "")
        profiles.append(profile)
    return MemoryUse(*profiles)


def test_the_text_is_as_expected() -> None:
    text = "".join(map(str, render(made(), MemOptions(pids=(7,)), ResultOptions(), "text")))
    assert text == GOLDEN


def test_what_was_freed_or_not_followed_is_not_unfreed() -> None:
    (row,) = made().unfreed.rows()
    assert (row.weight, row.marks.times) == (30_720, 60)


def test_equal_stacks_are_one_row() -> None:
    weights = sorted((row.weight, row.marks.times) for row in made().allocated.rows())
    assert weights == [(8, 1), (56_320, 110)]


def test_reserved_addresses_are_not_growth() -> None:
    (row,) = made().grown.rows()
    assert (row.weight, row.labels.state) == (12_288, "mmap")


def test_minor_and_major_faults_are_apart() -> None:
    faults = {row.labels.state: row.weight for row in made().faults.rows()}
    assert faults == {"minor fault": 41, "major fault": 2}


def test_without_malloc_no_line_speaks_of_it() -> None:
    text = "".join(map(str, render(made(), MemOptions(), ResultOptions(), "text")))
    assert "freed" not in text
    assert text.startswith("grown ")


def test_what_came_between_two_looks_is_the_difference() -> None:
    once = SITES[:2]
    later = [once[0]._replace(times=130, size=60_000, freed=41), *once[1:], once[1]._replace(pid=8)]
    grown, same, new = since(later, once)
    assert (grown.times, grown.size, grown.freed, grown.freed_size) == (30, 8_800, 1, 0)
    assert (same.times, same.size, same.freed) == (0, 0, 0)
    assert new == once[1]._replace(pid=8)


@pytest.mark.parametrize("shown", ["unfreed", "allocated", "grown"])
def test_sizes_that_no_machine_has_do_not_spoil_the_profile_of_others(
    shown: str, tmp_path: Path
) -> None:
    """A process may bring a malloc that gives 2^64 - 1 bytes each time."""
    huge, below = (1 << 64) - 1, "malloc" if shown != "grown" else "mmap"
    sites = [Site("evil", 8, below, 17, 500, huge, 0, 0, 0, 0) for _ in range(500)]
    sites.append(Site("evil", 8, below, 18, 500, 0, 1, huge, 0, 0))
    sites += [site for site in SITES if site.kind == below]
    profile = Profile("mem", unit="bytes", about=totals(sites))
    cut = fill(profile, shown, sites, Stacks({17: ("a",), 18: ("b",)}, Anyone()), lambda _: "")  # type: ignore[dict-item]
    for name in FORMATS:
        assert sum(map(len, writer.write(profile, name))), name
    saved = tmp_path / "saved.json"
    saved.write_text("".join(map(str, writer.write(profile, "json"))))
    assert profile_loader.read(str(saved)).total == profile.total
    weights = {(row.labels.pid, row.user): row.weight for row in profile.rows()}
    honest = fill(Profile("mem"), shown, SITES, Stacks({17: ("a",), 18: ("b",)}, Anyone()), str)  # type: ignore[dict-item]
    assert honest == 0
    assert cut == (2 if shown == "unfreed" else 1)  # one has freed more than it has
    assert min(weights.values()) >= 0
    assert profile.total < 1 << 63
    assert sum(weight for (pid, _), weight in weights.items() if pid == 7) > 0
    loss = losses({**STATS, "sizes_cut": cut}, MemOptions(), side_band_lost=0, max_depth=127)
    assert loss.any


def test_each_loss_says_what_would_help() -> None:
    loss = losses(
        {**STATS, "allocations_full": 3, "sites_full": 2},
        MemOptions(),
        side_band_lost=0,
        max_depth=127,
    )
    assert loss.any
    said = {cause.name: cause.what for cause in loss.causes}
    assert "--allocations 524288" in said["allocations_full"]
    assert "--hash-storage-size 81920" in said["map_full"]


@pytest.mark.parametrize(
    ("options", "is_loss"), [(MemOptions(), True), (MemOptions(pids=(1,)), False)]
)
def test_faults_of_other_processes_are_a_note(options: MemOptions, *, is_loss: bool) -> None:
    loss = losses({**STATS, "faults_missed": 1}, options, side_band_lost=0, max_depth=127)
    assert loss.any is is_loss


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (9_999, "9,999 bytes"),
        (10_000, "10.0 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (12_345_678, "12.3 MB"),
        (1 << 62, "4.6 EB"),
    ],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert bytes_in_unit(size) == text
