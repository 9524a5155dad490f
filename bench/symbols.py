"""What naming addresses costs in a program of 500 MB with 1,000,000 functions.

    python bench/symbols.py [--functions 1000000] [--megabytes 500] [--look-ups 5000] [--rounds 3]

Makes the file (its code is a hole, so it takes little room on the disk), then names random
addresses of it in fresh processes: without a cache, with an empty one, and with that filled.
Seconds and the peak memory of each; Python's own start is not included.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path

import results
from results import Figure

_TEXT = 0x1000
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NAMES = b"\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab\0"

_RUN = r"""
import random, re, sys, time
begun = time.perf_counter()
from purebpf.observe.symbols.elf_files import ElfFiles
from purebpf.symbols.frame import Address, FileOffset
from purebpf.symbols.proc_maps import MappedFile, Mapping
path, functions, distance, times = sys.argv[1], *map(int, sys.argv[2:])
size = functions * distance
mapping = Mapping(Address(0), Address(size), FileOffset(0x1000), MappedFile(path))
found = ElfFiles().functions(mapping, (0,))
chance = random.Random(2)
for _ in range(times):
    at = chance.randrange(functions)
    name, offset = found.find(FileOffset(0x1000 + at * distance + 3))
    assert (name, offset) == (f"_ZN7company7product9component{at:08d}E4callEPKcii", 3), (at, name)
spent = time.perf_counter() - begun
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(spent, peak / 1024)
"""


def write(path: Path, functions: int, size: int) -> int:
    """Make the file; the bytes from one function to the next.

    Half of the symbols are in the order of their addresses, as static ones are; the others are
    not, as linkers sort global ones by a hash of their names.
    """
    distance = size // functions & ~15
    numbers = list(range(functions))
    half = numbers[1::2]
    random.Random(1).shuffle(half)
    numbers = numbers[::2] + half
    strings = "".join(f"\0_ZN7company7product9component{at:08d}E4callEPKcii" for at in numbers)
    name_size = len(strings) // functions
    words = array("Q", bytes(24 * (functions + 1)))
    words[3::3] = array("Q", [1 + at * name_size | 0x12 << 32 | 2 << 48 for at in range(functions)])
    words[4::3] = array("Q", [_TEXT + at * distance for at in numbers])
    words[5::3] = array("Q", [distance - 8] * functions)
    note = struct.pack("<III4s20s", 4, 20, 3, b"GNU\0", os.urandom(20))
    with path.open("wb") as file:
        symbols_at = _TEXT + functions * distance
        strings_at = symbols_at + 8 * len(words)
        names_at = strings_at + len(strings) + 1
        sections_at = names_at + len(_NAMES)
        sections = [
            (0,) * 10,
            (1, 7, 2, 0x200, 0x200, len(note), 0, 0, 4, 0),
            (20, 1, 6, _TEXT, _TEXT, functions * distance, 0, 0, 16, 0),
            (26, 2, 0, 0, symbols_at, 8 * len(words), 4, 1, 8, 24),
            (34, 3, 0, 0, strings_at, len(strings) + 1, 0, 0, 1, 0),
            (42, 3, 0, 0, names_at, len(_NAMES), 0, 0, 1, 0),
        ]
        ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
        file.write(
            _HEADER.pack(ident, 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 1, 64, len(sections), 5)
        )
        text = functions * distance
        file.write(_SEGMENT.pack(1, 5, _TEXT, _TEXT, _TEXT, text, text, 4096))
        file.seek(0x200)
        file.write(note)
        file.seek(symbols_at)
        file.write(words.tobytes() + strings.encode() + b"\0" + _NAMES)
        file.write(b"".join(_SECTION.pack(*row) for row in sections))
    return distance


def looked_up(arguments: list[str], cache: str) -> tuple[float, float]:
    """Seconds and peak MB of a fresh process with its symbol cache in folder `cache`."""
    command = [sys.executable, "-c", _RUN, *arguments]
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Without a cache, with an empty one, and with that filled."""
    times_by_table: dict[str, list[tuple[float, float]]] = {
        "without a cache": [],
        "with an empty cache": [],
        "from the cache": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        distance = write(path, options.functions, options.megabytes << 20)
        arguments = [str(path), str(options.functions), str(distance), str(options.look_ups)]
        for turn in range(options.rounds):
            cache = f"{folder}/cache{turn}"
            for rounds, place in zip(
                times_by_table.values(), ("/dev/null", cache, cache), strict=True
            ):
                rounds.append(looked_up(arguments, place))
    for name, rounds in times_by_table.items():
        seconds, megabytes = map(statistics.median, zip(*rounds, strict=True))
        yield Figure(f"{options.look_ups:,} look-ups {name}", seconds, "s", limit=1)
        yield Figure(f"peak memory {name}", megabytes, "MB", limit=200)


if __name__ == "__main__":
    options = results.parser(__doc__, rounds=3)
    options.add_argument("--functions", type=int, default=1_000_000)
    options.add_argument("--megabytes", type=int, default=500)
    options.add_argument("--look-ups", type=int, default=5000)
    sys.exit(results.run(measure, options.parse_args()))
