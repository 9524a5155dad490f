"""Coverage-guided fuzzing of what reads files and filters (atheris, libFuzzer).

    python tests/fuzz/fuzz.py object --seconds 60
    python tests/fuzz/fuzz.py btf --seconds 60 --corpus DIRECTORY

The targets: `object` (`read_object`), `btf` (`Btf`), `perf_data` (`PerfData` and the stacks in it),
`filter` (the language of sample filters, and all that a filter becomes), `cfi` (call frame
information: rows, windows, rules, and stacks unwound with them), `windows` (windows from a cache),
`side_band` (the records of a ring that say what processes do: sorted, decoded, remembered).

Whatever the bytes are, the answer is a value or one of our errors, within ten seconds of CPU and a
gibibyte. Anything else ends the run with a file that holds the bytes: `object-crash-*`,
`object-timeout-*` or `object-oom-*` in the current directory, its path is behind "Test unit
written to"; `fuzz.py object FILE` runs it again. Seeds are the shipped objects and those of the
tests, files of every kind of record, and the filters of the tests and of docs/filter.md.

Needs `pip install -e ".[fuzz]"`.
"""

from __future__ import annotations

import argparse
import ast
import os
import signal
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["purebpf", "elftools"]):
    from purebpf.abi.perf import perf_event_sample_format as bit
    from purebpf.btf.codec.codecs import codec
    from purebpf.btf.types.parse import Btf
    from purebpf.btf.types.spelling import spell
    from purebpf.elf import read_object
    from purebpf.elf.container import ElfObject
    from purebpf.errors import (
        CoreRelocationError,
        FormatError,
        LinkError,
        NotSupportedError,
        SchemaError,
    )
    from purebpf.filter import FilterError, check, parse
    from purebpf.filter.compile import Counters, compile_terms, stride
    from purebpf.filter.decision_table import listing, pack_table, table
    from purebpf.filter.evaluate import predicate
    from purebpf.filter.fields import CONSTANTS, FIELDS
    from purebpf.filter.lowering import NoNames, SymbolRange, Term, resolve
    from purebpf.filter.sample_layout import Cast, SampleAccess, Word, from_registers
    from purebpf.observe.processes.change_decoder import SAMPLE_TYPE, ChangeDecoder
    from purebpf.observe.processes.unread_records import UnreadRecords
    from purebpf.relocate import Linker
    from purebpf.results.build.perf_data_aggregate import count
    from purebpf.spec import ObjectSpec
    from purebpf.symbols.address_spaces import AddressSpaces
    from purebpf.unwind.address_space import AddressSpace, CodeMapping
    from purebpf.unwind.cfi_file import CfiFile
    from purebpf.unwind.machine import AARCH64, X86_64
    from purebpf.unwind.packed_rule import pack_rule
    from purebpf.unwind.reason import Reason
    from purebpf.unwind.unwinder import MAX_FRAMES, Unwinder
    from purebpf.unwind.window_file import PackedWindows, Source, pack_windows, read_windows
    from purebpf.unwind.windows import find_in_block
    from purebpf.wire import perf_data_features as features
    from purebpf.wire import perf_records as records
    from purebpf.wire.perf_data import Feature
    from purebpf.wire.perf_data_reader import PerfData
    from purebpf.wire.perf_format import RecordFormat
    from purebpf.wire.process_runs import Happened, sort_out

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.fuzz import perf_data_seeds  # noqa: E402
from tests.unit.unwind import cfi_builder  # noqa: E402 - the tree is on the path now

ANSWERS = (FormatError, LinkError, CoreRelocationError, NotSupportedError, SchemaError)
"""What hostile bytes may raise."""

_TYPES = 200
"""Types looked at in one BTF: more make an execution slow and find nothing new."""

_LONGEST_S = 10
"""CPU time of an execution."""

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


class _Names(NoNames):
    """Knows every name that does not begin with x."""

    def user(self, name: str) -> int:
        return self._number(name)

    def group(self, name: str) -> int:
        return self._number(name)

    def cgroup(self, path: str) -> tuple[int, int]:
        return self._number(path), len(path) % 80

    def symbol(self, name: str) -> Iterable[SymbolRange]:
        low = self._number(name)
        return [SymbolRange(pid, low, low + 99) for pid in range(low % 4)] or super().symbol(name)

    def _number(self, name: str) -> int:
        if name.startswith("x"):
            raise LookupError(f"there is no user {name!r}")
        return zlib.crc32(name.encode(errors="surrogateescape"))


_PREPARED = SampleAccess(
    Cast(99, 8),
    {field.word: Word(8 * place, field.size) for place, field in enumerate(FIELDS.values())},
)
_KERNELS = (
    _PREPARED,
    _PREPARED._replace(ancestors=False),
    from_registers(None, "x86_64", own_pids=True),
    from_registers(None, "x86_64", own_pids=False),
)
"""How programs get at samples: all of them, or what helpers tell (before Linux 6.3)."""

_SAMPLES = (0, bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_WEIGHT_STRUCT, bit.PERF_SAMPLE_MAX - 1)


def fuzz_filter(data: bytes) -> None:
    """A filter, or an error that shows the place; then its text, and all that it becomes."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        parsed = parse(text)
    except FilterError as error:
        _shown(error, text)
        return
    assert parse(str(parsed)).root == parsed.root
    for sample_type in _SAMPLES:
        try:
            check(parsed, sample_type)
            terms = resolve(parsed, sample_type, _Names())
        except FilterError as error:
            _shown(error, text)
            continue
        _compiled(terms)


def _shown(error: FilterError, text: str) -> None:
    """A sentence, the text, and a caret below the place."""
    assert 1 <= error.column <= len(text) + 1, error.column
    sentence, _, caret = str(error).split("\n")
    assert sentence, text
    assert set(caret.strip()) == {"^"}, caret


def _compiled(terms: tuple[Term, ...]) -> None:
    for access in _KERNELS:
        _answered(lambda access=access: _program(terms, access))
    _answered(lambda: listing(entries := table(terms)) and pack_table(entries))
    _answered(lambda: predicate(terms)(records.Sample(0)))


def _program(terms: tuple[Term, ...], access: SampleAccess) -> None:
    """Every jump goes forward, to an instruction of the program, and none falls off its end."""
    code = compile_terms(terms, access, Counters(3, 1, stride(1 + len(terms))))
    assert code.listing()
    last = len(code.instructions) - 1
    for place, each in enumerate(code.instructions):
        if each.opcode & 7 in (5, 6) and each.opcode & 0xF0 not in (0x80, 0x90):
            assert 0 <= each.offset <= last - place - 1
    assert code.instructions[last].opcode == 0x95  # noqa: PLR2004


def fuzz_perf_data(data: bytes) -> None:
    """Read a file: its events, features, records and stacks."""
    try:
        file = PerfData(lambda at, size: data[at : at + size], len(data))
    except ANSWERS:
        return
    for feature, unpack in _FEATURES.items():
        _answered(lambda feature=feature, unpack=unpack: unpack(file.feature(feature) or b""))
    periods = [True] * len(file.events)
    _answered(lambda: count(file, {"/bin/sh": bytes(20)}, periods=periods, slots=True, unwind={}))


_FEATURES: dict[Feature, Callable[[bytes], object]] = {
    Feature.HOSTNAME: features.string,
    Feature.CMDLINE: features.unpack_strings,
    Feature.NRCPUS: features.unpack_cpus,
    Feature.BUILD_ID: features.unpack_build_ids,
    Feature.EVENT_DESC: features.unpack_events,
}


def fuzz_cfi(data: bytes) -> None:
    """Everything asked of a file with this .eh_frame (or .debug_frame) and .eh_frame_hdr."""
    kind, size = data[:1].ljust(1), int.from_bytes(data[1:3], "little")
    header, frames, stack = data[3 : 3 + size], data[3 + size :], data[-512:]
    machine = (X86_64, AARCH64)[kind[0] & 1]
    sections = {".debug_frame" if kind[0] & 4 else ".eh_frame": (cfi_builder.FRAME, frames)}
    if kind[0] & 2:
        sections[".eh_frame_hdr"] = (cfi_builder.HEADER, header)
    cfi = CfiFile(cfi_builder.Image(sections, machine=machine.elf, code=header))
    start = cfi_builder.TEXT
    for number in range(4):
        block = cfi.window(cfi.first_window + number)
        assert block[0] == len(block) - 1 <= 1 << 10
    rows = cfi.rows
    assert list(rows.starts) == sorted(set(rows.starts))
    assert len(cfi.whole().places) <= cfi.window_count
    for rule in cfi.table.rules:
        assert len(pack_rule(rule, machine)) == 8  # noqa: PLR2004
    space = AddressSpace([CodeMapping(start, start + 0x10000, 0, "file")])
    unwinder = Unwinder(machine, space, lambda _: cfi)
    registers = [_STACK + number for number in range(machine.registers)]
    registers[machine.sp] = _STACK
    for at in (*rows.starts[:8], start, start + 0x44):
        found = unwinder.unwind(at, registers, stack)
        assert len(found.frames) <= MAX_FRAMES
        assert isinstance(found.reason, Reason)
        function = cfi.function(at)
        assert function is None or function.start <= at < function.end


def fuzz_windows(data: bytes) -> None:
    """Windows of a cache: those that are taken can be searched, whatever they are."""
    try:
        read_windows(data, _SOURCE, "file")
    except ANSWERS:
        pass
    rest = data[_SUM_END:]  # its sum is right from here on
    data = data[: _SUM_END - 4] + zlib.crc32(rest).to_bytes(4, sys.byteorder) + rest
    try:
        _, rules, places, blocks = read_windows(data, _SOURCE, "file")
    except ANSWERS:
        return
    for place in places:
        block = blocks[place - 1 : place + blocks[place - 1]]
        assert len(block) == block[0] + 1
        assert find_in_block(block, 0) < len(rules) // 8


def fuzz_side_band(data: bytes) -> None:
    """Read a ring of the side band: no bytes are an error; they are read, or counted."""
    happened, unread = Happened.nothing(), UnreadRecords()
    sort_out(data, happened, threads=bool(data[:1] < b"\x80"))
    unread.add(happened)
    decoder = ChangeDecoder(RecordFormat(SAMPLE_TYPE, sample_id_all=True))
    spaces = AddressSpaces()
    for change in decoder.decode(unread.take(happened.runs)):
        spaces.feed(change)
    for pid in happened.runs:
        spaces.find(pid, 0x1010)
        spaces.earlier(pid, 900)
        spaces.family(pid)
    unread.orphans(spaces.exited)
    spaces.forget_exited(())


_SOURCE = Source(cfi_builder.TEXT, cfi_builder.TEXT + 4096, 0x1000, 99)
_SUM_END = 24


def _windows() -> Iterator[bytes]:
    """Those of small files."""
    for count in range(1, 9):
        section = cfi_builder.Section()
        for n in range(count):
            code = cfi_builder.advance(4) + cfi_builder.cfa_offset(16 + 8 * n)
            section.fde(cfi_builder.TEXT + 400 * n, 300, code)
        cfi = section.cfi()
        whole = cfi.whole()
        rules = b"".join([pack_rule(rule, X86_64) for rule in cfi.table.rules])
        yield pack_windows(PackedWindows(whole.first, rules, *whole[1:]), _SOURCE)


_STACK = 0x1000
"""Below the text, so that what a fuzzer puts on the stack can be both."""


def _frames() -> Iterator[bytes]:
    """Sections with every kind of entry and most instructions."""
    text, made = cfi_builder.TEXT, cfi_builder
    section = made.Section()
    section.fde(text, 64, b"\x41" + made.cfa_offset(16) + b"\x86\x02\x43\x0d\x06\x0a\x44\xc6\x0b")
    section.fde(text + 64, 64, made.expression(0x0F, b"\x77\x08\x06\x23\x08"))
    section.add_cie(made.cie(augmentation=b"zPLRS", data=b"\x9b\1\2\3\4\x1b\x1b"))
    section.fde(text + 128, 640, made.expression(0x10, b"\x76\0", 6) + b"\x07\x10")
    section.add_cie(made.cie(data=b"\x03", version=3))
    section.raw(bytes([0, 0x14, 0, 0, 64, 0, 0, 0, 0]) + made.advance(9) + made.cfa_offset(300))
    header = section.header([text, text + 64, text + 128])
    for kind in range(4):
        yield bytes([kind]) + len(header).to_bytes(2, "little") + header + section.data
    debug = bytearray(made.cie(augmentation=b"", version=4))
    debug[4:8] = b"\xff" * 4
    entry = bytes(4) + text.to_bytes(8, "little") + bytes([64]) + bytes(7) + made.cfa_offset(48)
    entry += bytes(-len(entry) % 4)
    yield b"\4\0\0" + bytes(debug) + len(entry).to_bytes(4, "little") + entry


def _in_time(run: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """`run`, which fails after `_LONGEST_S`. libFuzzer's own limit counts the time in which a busy
    machine did something else, too; it is for loops that Python cannot interrupt.
    """

    def run_limited(data: bytes) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST_S)
        run(data)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    return run_limited


def _too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"took more than {_LONGEST_S} seconds of CPU")


def _answered(work: Callable[[], object]) -> None:
    try:
        work()
    except ANSWERS:
        pass


TARGETS = {
    "object": fuzz_object,
    "btf": fuzz_btf,
    "perf_data": fuzz_perf_data,
    "filter": fuzz_filter,
    "cfi": fuzz_cfi,
    "windows": fuzz_windows,
    "side_band": fuzz_side_band,
}


def seeds(target: str) -> Iterator[bytes]:
    """What a target reads and the project has at hand."""
    if target == "filter":
        return _filters()
    if target == "cfi":
        return _frames()
    if target == "windows":
        return _windows()
    if target == "side_band":
        return iter(perf_data_seeds.records(SAMPLE_TYPE))
    return perf_data_seeds.files() if target == "perf_data" else _objects(target)


def _filters() -> Iterator[bytes]:
    """Those of docs/filter.md, and what the tests have in quotes."""
    for block in (ROOT / "docs/filter.md").read_text().split("```")[1::2]:
        _, _, lines = block.partition("\n")
        yield from (line.encode() for line in lines.splitlines() if line)
    for name in ("unit/filter/test_filter_parser", "kernel/observe/filters/test_sample_filter"):
        for node in ast.walk(ast.parse((ROOT / f"tests/{name}.py").read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value.encode("utf-8", "surrogatepass")


def _tokens() -> Iterator[str]:
    """The words of the language of filters, for a fuzzer that does not know it."""
    yield from FIELDS
    yield from (name for names in CONSTANTS.values() for name in names)
    yield from ("==", "!=", ">=", "<=", "&&", "||", "in", "under", "..", "0x", '\\"')


def _objects(target: str) -> Iterator[bytes]:
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
    signal.signal(signal.SIGVTALRM, _too_long)
    if options.file:
        _in_time(TARGETS[options.target])(Path(options.file).read_bytes())
        return
    with tempfile.TemporaryDirectory(prefix="purebpf-fuzz-") as folder:
        if not (child := os.fork()):
            _fuzz(options, Path(folder))  # libFuzzer ends the process
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _fuzz(options: argparse.Namespace, folder: Path) -> None:
    """Fuzz; `folder` has what need not be kept."""
    corpus: Path = options.corpus or folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(options.target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    longest = max(each.stat().st_size for each in corpus.glob("seed-*"))
    arguments = [sys.argv[0], str(corpus), f"-max_total_time={options.seconds}"]
    arguments += [
        f"-timeout={12 * _LONGEST_S}",
        "-rss_limit_mb=1024",
        f"-max_len={longest}",
        f"-artifact_prefix={Path.cwd()}/{options.target}-",
        "-print_final_stats=1",
    ]
    arguments += ["-len_control=0", "-use_value_profile=1"]
    if options.target == "filter":
        words = folder / "words"
        words.write_text("".join(f'"{token}"\n' for token in _tokens()))
        arguments.append(f"-dict={words}")
    atheris.Setup(arguments, _in_time(TARGETS[options.target]))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
