"""Programs with changed DWARF, for `mutate.py`."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from purebpf.dataflow.program import MissingPartError, NoDebugInfoError, Program
from purebpf.symbols.elf_image import ElfImage

_SOURCE = Path(__file__).parents[1] / "unit/dataflow/golden.c"
_NAMES = re.compile(r"^([0-9a-f]+) [Tt] (\w+_\w+)$", re.MULTILINE)
_KINDS = (
    ("-gdwarf-5",),
    ("-gdwarf-4",),
    ("-gdwarf-5", "-gsplit-dwarf"),
    ("-gdwarf-4", "-gsplit-dwarf"),
)


@cache
def _built() -> tuple[tuple[bytes, bytes], ...]:
    """Programs, each with its .dwo file or b""."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in _KINDS:
            target = Path(folder) / "golden"
            command = ["gcc", "-O2", "-g", *kind, "-o", target, _SOURCE]
            subprocess.run(command, check=True, cwd=folder, timeout=60)
            parts = list(Path(folder).glob("*.dwo"))
            found.append((target.read_bytes(), parts[0].read_bytes() if parts else b""))
            for part in parts:
                part.unlink()
    return tuple(found)


@cache
def _functions(program: bytes) -> tuple[int, ...]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(program)
        file.flush()
        listed = subprocess.run(["nm", file.name], check=True, capture_output=True, text=True)
    return tuple(int(address, 16) for address, _ in _NAMES.findall(listed.stdout))


def dwarf_seeds() -> Iterator[bytes]:
    """A number of the program, and it or its .dwo file."""
    for number, (program, part) in enumerate(_built()):
        yield bytes([number]) + (part or program)


def changed_dwarf(seed: bytes, chance: random.Random) -> bytes:
    """Change a few bytes of the sections with DWARF."""
    changed = bytearray(seed)
    places = _sections(seed)
    for _ in range(chance.randint(1, 6)):
        offset, size = chance.choice(places)
        changed[1 + offset + chance.randrange(size)] = chance.choice(
            (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
        )
    return bytes(changed)


@cache
def _sections(seed: bytes) -> tuple[tuple[int, int], ...]:
    image = ElfImage.of_bytes(seed[1:])
    suffix = ".dwo" if seed[0] >= len(_KINDS) // 2 else ""
    names = ("info", "abbrev", "str", "str_offsets", "loclists", "rnglists", "loc", "ranges")
    found = (image.section(f".debug_{name}{suffix}") for name in names)
    return tuple((one.offset, one.size) for one in found if one is not None and one.size)


def run_dwarf(data: bytes) -> None:
    """Ask for the data that the code of a program touches."""
    program, part = _built()[data[0] % len(_KINDS)] if data else _built()[0]
    changed = data[1:]
    whole = program if part else changed
    code = ElfImage.of_bytes(program)

    def read_code(address: int, size: int) -> bytes:
        for segment in code.segments:
            if segment.type == 1 and 0 <= address - segment.address < segment.file_size:
                return code.read(segment.offset + address - segment.address, min(size, 1 << 16))
        return b""

    def open_part(path: str) -> io.BytesIO | None:
        return io.BytesIO(changed) if path.endswith(".dwo") and part else None

    try:
        answers = Program(io.BytesIO(whole), read_code, open_part, os.devnull)
    except NoDebugInfoError:
        return
    for address in _functions(program):
        try:
            name, claim = answers.claim(address + 7, is_precise=False)
        except MissingPartError:
            continue
        assert isinstance(name, str)
        assert claim
