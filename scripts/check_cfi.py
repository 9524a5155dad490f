"""Compare the rows of call frame information with readelf's, for every ELF file of the machine.

    python scripts/check_cfi.py                    # below /usr, /lib, /opt
    python scripts/check_cfi.py /usr/bin /my/file
    python scripts/check_cfi.py --windows 64       # also: windows that are read one by one

Prints the files that differ and the totals; exits with 1 if anything differs. Needs readelf, which
passes over DW_CFA_restore in the initial instructions of a CIE, where libgcc and we do as it says:
two files of CUDA have a row each of that kind.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from purebpf.errors import FormatError  # noqa: E402 - the tree is on the path now
from purebpf.symbols.elf_image import ET_REL, ElfImage  # noqa: E402
from purebpf.unwind.cfi_file import CfiFile  # noqa: E402
from purebpf.unwind.windows import cut_window  # noqa: E402
from tests.support.oracles.readelf_frames import compare  # noqa: E402


def elf_files(places: list[str]) -> Iterator[str]:
    """Every ELF file below some places; of several names of one file the first."""
    seen: set[tuple[int, int]] = set()
    for place in places:
        paths = [place] if os.path.isfile(place) else sorted(map(str, Path(place).rglob("*")))
        for path in paths:
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            about = os.stat(path)
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def open_cfi(path: str) -> CfiFile | None:
    """The file, unless it is not one to unwind: an object or debug file, another machine's."""
    try:
        image = ElfImage.of_bytes(Path(path).read_bytes(), path)
    except FormatError:
        return None
    cfi = CfiFile(image)
    has_code = image.type != ET_REL and cfi.text.start < cfi.text.end
    return cfi if has_code and cfi.machine is not None else None


def odd_windows(path: str, cfi: CfiFile, samples: int) -> int:
    """How many of some windows differ when they are read one by one."""
    apart = open_cfi(path)
    count = cfi.window_count
    if apart is None or not count:
        return 0
    chance = random.Random(path)
    numbers = chance.sample(range(count), min(samples, count))
    odd = 0
    for number in (cfi.first_window + number for number in numbers):
        ours, whole = apart.window(number), cut_window(cfi.rows, number)
        odd += _rules(ours, apart) != _rules(whole, cfi)
    return odd


def _rules(block: object, cfi: CfiFile) -> list[tuple[int, object]]:
    """A block with the rules instead of their ids, which depend on the order of reading."""
    assert hasattr(block, "__getitem__")
    return [(row & 2047, row >> 11 and cfi.table.rules[row >> 11]) for row in block[1:]]


def main() -> int:
    """Compare, and print the totals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("places", nargs="*", default=["/usr", "/lib", "/opt"])
    parser.add_argument("--windows", type=int, default=16, help="windows compared in each file")
    options = parser.parse_args()
    begun = time.monotonic()
    files = fdes = rows = hidden = registers = different = windows = broken = exhausted = 0
    spent = 0.0
    for path in elf_files(options.places):
        cfi = open_cfi(path)
        if cfi is None or not cfi.has_rules:
            continue
        start = time.process_time()
        section = ".eh_frame" if cfi.uses_eh_frame else ".debug_frame"
        assert len(cfi.rows.starts) >= 0
        spent += time.process_time() - start
        comparison = compare(path, cfi, section)
        odd = odd_windows(path, cfi, options.windows)
        wrong = sum(comparison.different.values())
        if wrong or odd or cfi.exhausted or cfi.broken:
            print(
                f"{path}: {wrong} rows differ {comparison.different.most_common(2)}, {odd} windows "
                f"differ, {cfi.broken} entries broken, exhausted: {cfi.exhausted}",
                flush=True,
            )
        files += 1
        fdes += comparison.fdes
        rows += comparison.rows
        hidden += comparison.hidden
        registers += comparison.registers
        different += wrong
        windows += odd
        broken += cfi.broken
        exhausted += cfi.exhausted
    print(
        f"{files} files, {fdes} FDEs, {rows} rows: {different} differ; {hidden} are hidden by a "
        f"later FDE; all registers compared in {registers}; {windows} windows differ; {broken} "
        f"entries broken; {exhausted} files exhausted; {spent:.1f} s of CPU to read, "
        f"{time.monotonic() - begun:.0f} s in all"
    )
    return bool(different or windows or broken or exhausted)


if __name__ == "__main__":
    sys.exit(main())
