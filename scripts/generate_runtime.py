"""Write the layout of a runtime that its own library describes, as tests expect it.

    python scripts/generate_runtime.py /usr/lib/jvm/java-17-openjdk-amd64 [...] [--check]

Loads the libjvm.so of each folder (a JDK, or a runtime image), reads its tables as purebpf reads
those of a process, and writes tests/data/hotspot/VERSION.json. A field that purebpf needs and that
the library does not describe is an error that names it. --check writes nothing, and fails when a
file is not what the library says.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from purebpf.runtimes.cpython.memory import Memory  # noqa: E402
from purebpf.runtimes.hotspot.layout import LayoutError, read_jvm  # noqa: E402
from purebpf.runtimes.hotspot.vm_structs import ALL_EXPORTS  # noqa: E402

TARGET = ROOT / "tests/data/hotspot"


def read_library(library: Path) -> dict[str, int]:
    """The layout that a libjvm.so describes, loaded into this process.

    Raises:
        LayoutError: it describes no JVM that purebpf reads.
    """
    loaded = ctypes.CDLL(str(library))
    try:
        symbols = {
            name: ctypes.addressof(ctypes.c_uint64.in_dll(loaded, name)) for name in ALL_EXPORTS
        }
    except ValueError as error:
        raise LayoutError(str(error)) from None
    memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        jvm = read_jvm(Memory(lambda at, size: os.pread(memory, size, at)), symbols)
    finally:
        os.close(memory)
    return {name: int(value) for name, value in jvm.layout._asdict().items()}


def text_of(layout: dict[str, int]) -> str:
    """A layout as the file has it."""
    return json.dumps(layout, indent=1) + "\n"


def _update(folder: Path, *, is_check: bool) -> bool:
    library = next(iter(sorted(folder.rglob("libjvm.so"))), None)
    if library is None:
        print(f"{folder}: no libjvm.so", file=sys.stderr)
        return False
    try:
        layout = read_library(library)
    except (LayoutError, OSError) as error:
        print(f"{library}: {error}", file=sys.stderr)
        return False
    target = TARGET / f"{layout['version']}.json"
    if not is_check:
        TARGET.mkdir(parents=True, exist_ok=True)
        target.write_text(text_of(layout))
        return True
    if target.exists() and target.read_text() == text_of(layout):
        return True
    print(f"{library}: {target.relative_to(ROOT)} is another layout", file=sys.stderr)
    return False


def main(argv: list[str]) -> int:
    """Write or check each; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(argv)
    answers = [_update(each, is_check=options.check) for each in options.folders]
    return 0 if all(answers) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
