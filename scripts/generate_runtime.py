"""Write the layout of a runtime that its own file describes, as tests expect it.

    python scripts/generate_runtime.py JDK_FOLDER /usr/bin/node [...] [--check]

A folder is a JDK, or a runtime image: its libjvm.so is loaded, its tables are read as purebpf reads
those of a process, and written to tests/data/hotspot/VERSION.json. A file is a node, or its
library: its constants are read, and written to tests/data/v8/VERSION.json, by the version of V8. A
field that purebpf needs and that the file does not describe is an error that names it. --check
writes nothing, and fails when a file in tests/data is not what the runtime says.
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

from purebpf.errors import FormatError  # noqa: E402
from purebpf.observe.runtimes.v8.v8_program import describe  # noqa: E402
from purebpf.runtimes.cpython.memory import Memory  # noqa: E402
from purebpf.runtimes.hotspot.layout import LayoutError, read_jvm  # noqa: E402
from purebpf.runtimes.hotspot.vm_structs import ALL_EXPORTS  # noqa: E402
from purebpf.runtimes.v8.layout import V8LayoutError  # noqa: E402
from purebpf.symbols.elf_image import ElfImage  # noqa: E402

DATA = ROOT / "tests/data"


def read_node(program: Path) -> dict[str, int]:
    """The layout that a node describes.

    Raises:
        V8LayoutError: it describes no V8 that purebpf reads.
    """
    layout = describe(ElfImage.of_bytes(program.read_bytes(), str(program))).layout
    return {name: int(value) for name, value in layout._asdict().items()}


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


def _layout(place: Path) -> tuple[str, dict[str, int]]:
    """The kind of a runtime, and its layout."""
    if place.is_dir():
        library = next(iter(sorted(place.rglob("libjvm.so"))), None)
        if library is None:
            raise LayoutError("no libjvm.so")
        return "hotspot", read_library(library)
    return "v8", read_node(place)


def _update(place: Path, *, is_check: bool) -> bool:
    try:
        kind, layout = _layout(place)
    except (LayoutError, V8LayoutError, FormatError, OSError) as error:
        print(f"{place}: {error}", file=sys.stderr)
        return False
    target = DATA / kind / f"{layout['version']}.json"
    if not is_check:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text_of(layout))
        return True
    if target.exists() and target.read_text() == text_of(layout):
        return True
    print(f"{place}: {target.relative_to(ROOT)} is another layout", file=sys.stderr)
    return False


def main(argv: list[str]) -> int:
    """Write or check each; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("places", metavar="PLACE", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(argv)
    answers = [_update(each, is_check=options.check) for each in options.places]
    return 0 if all(answers) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
