"""Writing maps, one element and one global: against bcc's Python on the same map in one run.

    python bench/writing.py [--entries 1000000] [--rounds 5]

bcc's own classes (Debian's python3-bpfcc) write the map that purebpf made. For its batches, ctypes
arrays are filled before the clock starts, which is most of the work; what fills them is not timed.
"""

from __future__ import annotations

import argparse
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import results
from reading import Key, Types, Value, bcc_hash, taken
from results import Figure

sys.path.insert(0, str(Path(__file__).parents[1]))

import purebpf
from purebpf.abi.bpf import bpf_map_type
from purebpf.loader.maps.map import Map
from purebpf.spec import MapSpec

try:
    from bcc import table
except ImportError:
    table = None

DATA = Path(__file__).parents[1] / "tests/data/load_counter.bpf.o"
SOME = 20_000
"""Elements in one round of single calls."""

SET, GET = "m[tuple] = tuple", "m[tuple]"
BCC_SET, BCC_GET = "bcc h[Key()] = Leaf()", "bcc h[Key()]"
TUPLES, DICT, BYTES = "update(pairs of tuples)", "update(dict)", "update(pairs of bytes)"
FROM_NUMPY, BCC_BATCH = "from_numpy()", "bcc items_update_batch(), filled before"


def bench_many(types: Types, entries: int, rounds: int) -> dict[str, float]:
    """CPU seconds to store every entry, by the side."""
    spec = hash_of(types, entries)
    with Map.create(spec, btf=types.btf) as m:
        pairs = [((i, i & 7), (i, i, i, i & 7, 1)) for i in range(entries)]
        by_key = dict(pairs)
        key_format, value_format = struct.Struct("=II"), struct.Struct("=QQQII")
        raw = [(key_format.pack(*key), value_format.pack(*value)) for key, value in pairs]
        m.update(pairs)
        keys, values = m.to_numpy()
        sides: dict[str, Callable[[], object]] = {
            TUPLES: lambda: m.update(pairs),
            DICT: lambda: m.update(by_key),
            BYTES: lambda: m.update(raw),
            FROM_NUMPY: lambda: m.from_numpy(keys, values),
        }
        if table is not None:
            theirs = bcc_hash(m.fileno(), entries)
            filled = (
                (Key * entries).from_buffer(bytearray(keys.tobytes())),
                (Value * entries).from_buffer(bytearray(values.tobytes())),
            )
            sides[BCC_BATCH] = lambda: theirs.items_update_batch(*filled)
        return measured(sides, rounds)


def bench_one(types: Types, rounds: int) -> dict[str, float]:
    """CPU microseconds of one element, by the side."""
    with Map.create(hash_of(types, SOME), btf=types.btf) as m:
        keys = [(i, i & 7) for i in range(SOME)]
        values = [(i, i, i, i & 7, 1) for i in range(SOME)]
        sides: dict[str, Callable[[], object]] = {
            SET: lambda: [m.put(key, value) for key, value in zip(keys, values, strict=True)],
            GET: lambda: [m[key] for key in keys],
        }
        if table is not None:
            theirs = bcc_hash(m.fileno(), SOME)
            sides[BCC_SET] = lambda: [
                theirs.__setitem__(Key(*key), Value(*value))
                for key, value in zip(keys, values, strict=True)
            ]
            sides[BCC_GET] = lambda: [theirs[Key(*key)] for key in keys]
        return {name: s / SOME * 1e6 for name, s in measured(sides, 3 * rounds).items()}


def hash_of(types: Types, entries: int) -> MapSpec:
    kind = bpf_map_type.BPF_MAP_TYPE_HASH
    return MapSpec("bench", kind, 8, 32, entries, 0, types.key, types.value)


def measured(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    return taken(
        {
            name: (lambda work=work: work() and None, resource.RUSAGE_SELF)
            for name, work in sides.items()
        },
        rounds,
    )


def measure(options: argparse.Namespace) -> Iterator[Figure]:
    """Many elements, one, and a global variable."""
    if table is None:
        print("left out, not installed: python3-bpfcc", file=sys.stderr)
    types, what = Types(), f"{options.entries:,} entries by"
    many = bench_many(types, options.entries, options.rounds)
    for name, limit in ((TUPLES, 1.5), (DICT, 1.5), (BYTES, 1.5), (FROM_NUMPY, 0.7)):
        yield Figure(f"{what} {name}", many[name], "s of CPU", limit=limit)
    if BCC_BATCH in many:
        ours, theirs = many[FROM_NUMPY], many[BCC_BATCH]
        yield Figure(f"{what} {FROM_NUMPY}", ours, "s of CPU", BCC_BATCH, theirs)
    one = bench_one(types, options.rounds)
    for name, peer in ((SET, BCC_SET), (GET, BCC_GET)):
        limit = 1.0 if peer in one else None
        yield Figure(name, one[name], "us of CPU", peer, one.get(peer), limit)
    with purebpf.load(purebpf.read_object(DATA)) as obj:
        name = next(iter(obj.globals))
        sides = {"globals": lambda: [obj.globals[name] for _ in range(SOME)]}
        cost = measured(sides, 3 * options.rounds)["globals"] / SOME * 1e6
        yield Figure("obj.globals[name]", cost, "us of CPU", limit=1.0)


if __name__ == "__main__":
    made = results.parser(__doc__, rounds=5)
    made.add_argument("--entries", type=int, default=1_000_000)
    sys.exit(results.run(measure, made.parse_args()))
