"""Coverage-guided fuzzing of what reads files: `read_object` and `Btf` (atheris, libFuzzer).

    python tests/fuzz/fuzz.py object --seconds 60
    python tests/fuzz/fuzz.py btf --seconds 60 --corpus DIRECTORY

Whatever the bytes are, the answer is a value or one of our errors, within ten seconds and a
gibibyte. Anything else ends the run with a file `crash-*`, `timeout-*` or `oom-*` that holds the
bytes; `fuzz.py object FILE` runs it again. Seeds are the shipped objects and those of the tests.

Needs `pip install -e ".[fuzz]"`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["purebpf", "elftools"]):
    from purebpf.btf.codec import codec
    from purebpf.btf.parse import Btf
    from purebpf.btf.spelling import spell
    from purebpf.elf import read_object
    from purebpf.elf.container import ElfObject
    from purebpf.errors import (
        CoreRelocationError,
        FormatError,
        LinkError,
        NotSupportedError,
        SchemaError,
    )
    from purebpf.relocate import Linker
    from purebpf.spec import ObjectSpec

ROOT = Path(__file__).parents[2]
ANSWERS = (FormatError, LinkError, CoreRelocationError, NotSupportedError, SchemaError)
"""What hostile bytes may raise."""

_TYPES = 200
"""Types looked at in one BTF: more make an execution slow and find nothing new."""

_NAMES = 8
"""Names looked up: where strings share tails, each look-up compares every name."""


def fuzz_object(data: bytes) -> None:
    """Read an object, then link each program against the object's own types."""
    try:
        spec = read_object(data)
    except ANSWERS:
        return
    assert str(spec)
    linker = Linker(spec, [spec.btf] if spec.btf is not None else [])
    for name in spec.programs:
        _answered(lambda name=name: linker.link(name))
    _answered(lambda: _set(spec))


def _set(spec: ObjectSpec) -> None:
    """Give every variable the value it has."""
    for variable in spec.variables.values():
        if variable.name not in spec.externs:
            image = spec.maps[variable.map].contents
            raw = image[variable.offset : variable.offset + variable.size]
            _answered(lambda raw=raw, name=variable.name: spec.set(**{name: raw}))


def fuzz_btf(data: bytes) -> None:
    """Parse types; decode, spell, find and use each."""
    try:
        btf = Btf(data)
    except ANSWERS:
        return
    for type_id in range(min(len(btf), _TYPES)):
        _answered(lambda type_id=type_id: btf.type(type_id))
        _answered(lambda type_id=type_id: spell(btf, type_id))
        _answered(lambda type_id=type_id: _round_trip(btf, type_id))
        _answered(lambda type_id=type_id: btf.dump_c(type_id))
    for type_id in range(min(len(btf), _NAMES)):
        _answered(lambda type_id=type_id: btf.find(btf.name(type_id)))
        _answered(lambda type_id=type_id: btf.find_essential(btf.name(type_id)))


def _round_trip(btf: Btf, type_id: int) -> None:
    made = codec(btf, type_id)
    if made.size <= 1 << 12:
        raw = bytes(made.size)
        assert len(made.encode(made.decode(raw))) == made.size


def _answered(work: Callable[[], object]) -> None:
    try:
        work()
    except ANSWERS:
        pass


TARGETS = {"object": fuzz_object, "btf": fuzz_btf}


def seeds(target: str) -> Iterator[bytes]:
    """The shipped objects and the fixtures, or the BTF in them."""
    for path in sorted(
        (*ROOT.glob("purebpf/objects/*.bpf.o"), *ROOT.glob("tests/data/**/*.bpf.o"))
    ):
        data = path.read_bytes()
        if target == "object":
            yield data
            continue
        try:
            section = (elf := ElfObject(data, path.name)).find(".BTF")
            if section is not None:
                yield bytes(elf.contents(section))
        except ANSWERS:
            continue


def main() -> None:
    """Fuzz one target for a while, or run one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("file", nargs="?", help="run these bytes once")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="keep what is found here")
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    run = TARGETS[options.target]
    if options.file:
        run(Path(options.file).read_bytes())
        return
    corpus = options.corpus or Path(tempfile.mkdtemp(prefix="purebpf-fuzz-"))
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(options.target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    longest = max(each.stat().st_size for each in corpus.glob("seed-*"))
    arguments = [sys.argv[0], str(corpus), f"-max_total_time={options.seconds}"]
    arguments += [
        "-timeout=10",
        "-rss_limit_mb=1024",
        f"-max_len={longest}",
        "-print_final_stats=1",
    ]
    arguments += ["-len_control=0", "-use_value_profile=1"]
    atheris.Setup(arguments, run)
    atheris.Fuzz()
    if not options.corpus:
        shutil.rmtree(corpus)


if __name__ == "__main__":
    main()
