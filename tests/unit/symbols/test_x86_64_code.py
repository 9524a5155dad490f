"""Instructions of x86-64, against objdump on whole libraries."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.elf_image import EM_X86_64, ElfImage
from purebpf.symbols.x86_64_code import CodeError, Flow, decode

LINE = re.compile(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)")
JUMP = re.compile(r"(?:notrack |bnd |data16 )*(j\w+|loop\w*|xbegin)\S* +([0-9a-f]+)\b")
FILES = ("libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1")


def library(name: str) -> Path | None:
    """Where a library of this machine is."""
    for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"):
        if (path := Path(folder, name)).exists():
            return path
    return None


def listing(path: Path, start: int, size: int) -> Iterator[tuple[int, int, str]]:
    """Address, size and text of each instruction, as objdump has them."""
    limits = [f"--start-address={start}", f"--stop-address={start + size}"]
    words = ["objdump", "-dw", "-j", ".text", *limits, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines()[:-8]:  # the last may be cut
        found = LINE.fullmatch(line)
        if found is None or "(bad)" in found[3]:
            continue
        is_joined = found[2].startswith("9b d")  # fwait, and another instruction
        yield int(found[1], 16), 1 if is_joined else len(found[2].split()), found[3]


@pytest.mark.needs("objdump", "x86_64")
@pytest.mark.parametrize("name", FILES)
def test_sizes_and_targets_are_those_of_objdump(name):
    path = library(name)
    if path is None:
        pytest.skip(f"this machine has no {name}")
    data = path.read_bytes()
    image = ElfImage.of_bytes(data, name)
    assert image.machine == EM_X86_64
    text = image.section(".text")
    assert text is not None
    code, checked = image.contents(text), 0
    for address, size, words in listing(path, text.address, min(text.size, 250_000)):
        instruction = decode(code, address - text.address)
        assert instruction.size == size, (hex(address), words)
        mnemonic = words.split(" ")[-1] if words.startswith(("repz ret", "bnd ret")) else ""
        is_return = words.split("\t")[0].strip() in ("ret", "repz ret", "bnd ret") or mnemonic
        assert (instruction.flow is Flow.RETURN) == bool(is_return) or words.startswith("ret "), (
            words
        )
        direct = JUMP.match(words)
        is_jump = instruction.flow in (Flow.JUMP, Flow.CONDITIONAL)
        assert is_jump == bool(direct), (hex(address), words)
        if direct:
            assert instruction.target + text.address == int(direct[2], 16), words
        assert (instruction.flow is Flow.INDIRECT) == bool(re.search(r"\bjmp +\*", words)), words
        checked += 1
    assert checked > 5_000


@pytest.mark.parametrize(
    ("code", "flow", "size"),
    [
        ("c3", Flow.RETURN, 1),
        ("f3 c3", Flow.RETURN, 2),
        ("c2 10 00", Flow.RETURN, 3),
        ("cb", Flow.OTHER, 1),
        ("48 cf", Flow.OTHER, 2),
        ("ff e0", Flow.INDIRECT, 2),
        ("3e ff e0", Flow.INDIRECT, 3),
        ("ff 24 c5 00 10 40 00", Flow.INDIRECT, 7),
        ("ff 2d 00 00 00 00", Flow.OTHER, 6),
        ("eb fe", Flow.JUMP, 2),
        ("0f 84 00 00 00 00", Flow.CONDITIONAL, 6),
        ("e3 00", Flow.CONDITIONAL, 2),
        ("c7 f8 00 00 00 00", Flow.CONDITIONAL, 6),
        ("66 66 48 e8 00 00 00 00", Flow.NEXT, 8),
        ("48 b8 00 00 00 00 00 00 00 00", Flow.NEXT, 10),
        ("f7 c0 00 00 00 00", Flow.NEXT, 6),
        ("f7 d8", Flow.NEXT, 2),
        ("62 f1 fd 48 70 c0 07", Flow.NEXT, 7),
        ("8f e8 78 c0 c1 07", Flow.NEXT, 6),
        ("c5 f8 77", Flow.NEXT, 3),
    ],
)
def test_what_libraries_seldom_have(code, flow, size):
    found = decode(bytes.fromhex(code))
    assert (found.flow, found.size) == (flow, size)


@pytest.mark.parametrize(
    "code", ["06", "0f 04", "d5 00 90", "66 e9 00 00", "82 00 00", "e8 00 00", "ea", "", "48"]
)
def test_what_is_no_instruction_is_refused(code):
    with pytest.raises(CodeError):
        decode(bytes.fromhex(code))


@given(st.binary(max_size=24))
def test_any_bytes_are_an_instruction_or_refused(code):
    try:
        found = decode(code)
    except CodeError:
        return
    assert 0 < found.size <= min(15, len(code))
