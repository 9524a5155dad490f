"""Change files at random and look for an answer that is neither a value nor an error of ours.

    python tests/fuzz/mutate.py json --seconds 60
    python tests/fuzz/mutate.py json --seed 17          the same changes again
    sudo python tests/fuzz/mutate.py load --seconds 60

Beside `fuzz.py`, which follows coverage through what is pure: here each file goes all the way, as a
command would take it, and the changes know the format. The targets:

`perf_data` `json` `folded`   read, then written in every format, and compared with itself
`pprof` `speedscope` `perf_script`   the same of other tools' files
`elf` `perf_map` `jitdump`    symbols of a hostile process, looked up
`names`                       mangled names, made readable
`inspect`                     `purebpf inspect` of an object, with CO-RE against made-up kernels
`sections` `recording`        `purebpf inspect` of an ELF file's sections, and of a perf.data file
`calls`                       arguments of system calls, as `trace` shows them
`proc`                        names of a process in the files of /proc
`python`                      the memory of an interpreter, as `dump --async` reads it
`php` `ruby` `java` `node`    the same of the others, as `dump` reads it; root, and the interpreter
`dns`                         answers of name servers, as `tcp --dns` takes them
`lines`                       source lines, as llvm-symbolizer answers of a process's DWARF
`probes`                      functions by name, static probes and Go's table of an ELF file
`dwarf`                       types of a program or of its .dwo file, as `types` asks for them
`window` `agent_config`       a window of the agent, written as stores want it; its configuration
`load`                        an object into this kernel, for real, if its maps are small; root
`btf`                         an object for a kernel with types from a changed file (btf=); root

An execution has ten seconds of CPU time, and memory of 2 GiB in all. What it finds ends the run: a
file in the current directory, `json-crash-1a2b3c`, has the bytes, and `mutate.py json FILE` runs
them again.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import hashlib
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from purebpf import load, read_object  # noqa: E402 - the tree is on the path now
from purebpf.btf.types.parse import Btf  # noqa: E402
from purebpf.elf.container import ElfObject  # noqa: E402
from purebpf.errors import PurebpfError  # noqa: E402
from purebpf.formats import FORMATS  # noqa: E402
from purebpf.observe.saved import perf_data_loader, profile_loader  # noqa: E402
from purebpf.observe.symbols.elf_files import functions_of  # noqa: E402
from purebpf.results.formats import html, writer  # noqa: E402
from purebpf.results.model.profile import Profile  # noqa: E402
from purebpf.results.shape import diff  # noqa: E402
from purebpf.symbols.demangle import demangle  # noqa: E402
from purebpf.symbols.elf_image import ElfImage  # noqa: E402
from purebpf.symbols.frame import FileOffset  # noqa: E402
from purebpf.symbols.jitdump import JitDump  # noqa: E402
from purebpf.symbols.perf_map import PerfMap  # noqa: E402
from purebpf.syscall import proc  # noqa: E402
from purebpf.tools.inspect import render, render_files  # noqa: E402
from purebpf.tools.inspect.model import describe  # noqa: E402
from purebpf.tools.inspect.perf_data import describe_perf_data  # noqa: E402
from purebpf.tools.inspect.sections import describe_elf  # noqa: E402
from tests.fuzz import hostile, hostile_agent, hostile_dwarf, perf_data_seeds  # noqa: E402
from tests.fuzz import hostile_interpreters as interpreters  # noqa: E402
from tests.support.builders.btf_random import random_kernel  # noqa: E402
from tests.support.builders.profiles import example, timed  # noqa: E402
from tests.unit.results.test_readers import SCRIPT  # noqa: E402
from tests.unit.symbols import test_jitdump as jitdump  # noqa: E402

_LONGEST_S = 10.0
_MEMORY = 2 << 30
_MAPS = 16 << 20
"""Bytes that the maps of an object may have, to be made."""

_WORDS = (0, 1, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 63)
_VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64, 10**400),
    *(0.5, 1e308, float("inf"), float("nan"), True, None, "", "\0", "#x", "\ud800", "a;b c 5\n"),
    *("x" * 70_000, "0x10", "-1", [], {}, [0], [[]], {"": 0}, [0] * 70_000, [1 << 31], [-1], ["0"]),
)
_TOKENS = (
    *(b"9" * 18, b"9" * 19, b"9" * 4_301, b"1e309", b"-1", b"0", b"0x10", b"\xff", b"\0", b"\r"),
    *(b"#", b";", b";;", b" ", b"\n", b"_[k]", b"--", b"-", b"[unknown]", b"a;" * 70_000, b"\t"),
    *(b"ffffffffffffffff", b"10000000000000000", b"\xe2\x80\xae", b"\x1b[2J", "٣".encode()),
)


def changed_bytes(data: bytes, chance: random.Random) -> bytes:
    """Some bytes, words and pieces are others, gone, or there twice."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        if not made:
            break
        at = chance.randrange(len(made))
        what = chance.randrange(8)
        if what <= 1:
            made[at] = chance.randrange(256)
        elif what <= 4:
            size = chance.choice((1, 2, 4, 8))
            at -= at % size
            word = chance.choice((*_WORDS, len(made), at, chance.getrandbits(64)))
            word += chance.choice((-1, 0, 0, 1))
            made[at : at + size] = (word & (1 << 8 * size) - 1).to_bytes(size, "little")
        elif what == 5:
            del made[at : at + chance.choice((1, 8, 64, len(made)))]
        elif what == 6:
            end = at + chance.choice((1, 8, 64, 4096))
            made[at:at] = made[at:end] * chance.choice((1, 1, 3, 100))
        else:
            made[at : at + chance.choice((0, 8))] = chance.choice(_TOKENS)
    return bytes(made[: 1 << 22])


def changed_json(data: bytes, chance: random.Random) -> bytes:
    """Some values are others; at times the text is changed, too."""
    tree = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        owner, key = chance.choice([*_places(tree)])
        if chance.random() < 0.1:
            del owner[key]
        else:
            owner[key] = copy.deepcopy(chance.choice(_VALUES))
    text = json.dumps(tree).encode("utf-8", "surrogatepass")
    if chance.random() < 0.3:
        text = text.replace(b"Infinity", b"1e309")
    return changed_bytes(text, chance) if chance.random() < 0.1 else text


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in entries:
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def run_profile(data: bytes) -> None:
    """Read as a command does, write in every format, and compare."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        profile = profile_loader.read(file.name, timed=True)
    written(profile)


def run_perf_data(data: bytes) -> None:
    """The same for each way to weigh."""
    for weight in ("samples", "period"):
        wanted = perf_data_loader.LoadOptions(weight=weight, timed=True)
        written(perf_data_loader.of_bytes(data, "x.data", wanted).profile)


def written(profile: Profile) -> None:
    """Every format of a profile; each may refuse it."""
    for name in FORMATS:
        _answered(lambda name=name: _consumed(writer.write(profile, name)))
    _answered(lambda: html.comparison(profile, profile, "x"))
    _answered(
        lambda: (
            diff.document(found := diff.compare(profile, profile, "x")) + "".join(diff.text(found))
        )
    )


def _consumed(pieces: Any) -> None:
    for piece in pieces:
        assert isinstance(piece, str | bytes)


def _answered(work: Callable[[], object]) -> None:
    with suppress(PurebpfError):
        work()


def run_elf(data: bytes) -> None:
    """Names of a process's file."""
    image = ElfImage(lambda at, size: data[at : at + size], len(data), "x")
    functions = functions_of(image)
    for offset in (0, 0x1000, len(data) - 1, 1 << 63):
        functions.find(FileOffset(offset))


def run_names(data: bytes) -> None:
    """Each word, as a symbol's name."""
    for name in data.decode(errors="surrogateescape").split():
        assert demangle(name)


def run_perf_map(data: bytes) -> None:
    """Names of generated code, at once and as it grows."""
    names, grown = PerfMap(data), PerfMap(b"")
    for size in (len(data) // 3, len(data) // 2, len(data)):
        grown.grow(data[grown.size : size])
    assert len(grown) == len(names)
    for address in (0, 0x1000, 0x1018, 0x2000, (1 << 64) - 1):
        assert grown.find(address) == names.find(address)


def run_jitdump(data: bytes) -> None:
    """The same, in two parts, as it grows."""
    dump = JitDump()
    for size in (len(data) // 2, len(data)):
        dump.grow(lambda at, length, size=size: data[at : min(at + length, size)], size)
        for address in (0, 0x1000, 0x2000, (1 << 64) - 1):
            dump.find(address)


@cache
def _kernels() -> list[Btf]:
    return [random_kernel(seed).btf() for seed in range(3)]


def run_inspect(data: bytes) -> None:
    """What an object holds, as text and as JSON."""
    spec = read_object(data)
    for targets in (None, _kernels()):
        report = describe(spec, targets)
        assert "".join(render.lines(report))
        assert render.document(report)


def run_sections(data: bytes) -> None:
    """The structure of an ELF file, as text and as JSON."""
    report = describe_elf(io.BytesIO(data), "x")
    assert "".join(render_files.elf_lines(report))
    assert render.document(report)


def run_recording(data: bytes) -> None:
    """The headers of a perf.data file, as text and as JSON."""
    report = describe_perf_data(lambda at, size: data[at : at + size], len(data), "x")
    assert "".join(render_files.perf_data_lines(report))
    assert render.document(report)


def run_load(data: bytes) -> None:
    """Load and close; nothing stays open, whatever happens."""
    _load(data, None)


def run_btf(data: bytes) -> None:
    """Load an object of ours for the kernel that these types are of."""
    _load(_core_object(), Btf(data))


def _load(data: bytes, btf: Btf | None) -> None:
    spec = read_object(data)
    size = sum((each.key_size + each.value_size) * each.max_entries for each in spec.maps.values())
    if size > _MAPS or any(each.pinning for each in spec.maps.values()):
        return
    before = len(os.listdir("/proc/self/fd"))
    try:
        load(spec, btf).close()
    finally:
        after = len(os.listdir("/proc/self/fd"))
    assert before == after, f"{after - before} descriptors stay open"


@cache
def _core_object() -> bytes:
    return (ROOT / "purebpf/objects/offcpu.bpf.o").read_bytes()


def profile_seeds() -> Iterator[bytes]:
    """Saved profiles."""
    for profile in (example(), timed()):
        yield "".join(map(str, writer.write(profile, "json"))).encode()


def folded_seeds() -> Iterator[bytes]:
    """Folded stacks."""
    yield (ROOT / "tests/data/stacks.folded").read_bytes()[:4096]
    yield "".join(map(str, writer.write(example(), "folded"))).encode()
    yield b"app;main;leaf 12 20\napp;main;other 30 31\n"
    yield b"heap profile: 1: 100 [ 1: 100] @ heapprofile\n 1: 100 [ 1: 100] @ 0x1\n"


def pprof_seeds() -> Iterator[bytes]:
    """pprof, unpacked."""
    for profile in (example(), timed()):
        yield gzip.decompress(b"".join(map(bytes, writer.write(profile, "pprof"))))


def speedscope_seeds() -> Iterator[bytes]:
    """speedscope's JSON."""
    for profile in (example(), timed()):
        yield "".join(map(str, writer.write(profile, "speedscope"))).encode()
    yield (
        b'{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":'
        b'[{"name":"A"},{"name":"B","file":"b","line":3}]},"profiles":[{"type":"evented","name":"p",'
        b'"unit":"none","startValue":0,"endValue":20,"events":[{"type":"O","frame":0,"at":0},'
        b'{"type":"O","frame":1,"at":5},{"type":"C","frame":1,"at":9},'
        b'{"type":"C","frame":0,"at":20}]}]}'
    )


def script_seeds() -> Iterator[bytes]:
    """The text of perf script, with and without call chains and headers."""
    yield SCRIPT.encode()
    yield "".join(
        f"{comm:>16} {fields}{0x55A595227155:17x} leaf+0xc (/srv/app (deleted))\n  app.c:7\n"
        for comm in ("pool 3 12", "cafe", "")
        for fields in ("29647 [000] U  1.5: 1 cycles: ", "29647 cpu-clock: ", "")
    ).encode()
    yield (
        b"app  10 [000]  0.2: PERF_RECORD_LOST lost 17\n\n\t  1155 leaf\n  a.h:3 (inlined)\n"
        b"\n|7   sink;\ncaf\xe9 7/8 0.3: x:y: a=b\n\tffffffff81000050 f ([kernel.kallsyms])\n"
    )


def elf_seeds() -> Iterator[bytes]:
    """Small programs and libraries."""
    for path in sorted((ROOT / "tests/data/symbols").glob("tiny*")):
        if (data := path.read_bytes()).startswith(b"\x7fELF"):
            yield data


def name_seeds() -> Iterator[bytes]:
    """Of C++ and Rust, with everything that repeats and refers back."""
    yield b" ".join(
        (
            b"_ZNSt6vectorISt4pairIKSsiESaIS2_EE9push_backERKS2_",
            b"_ZN4core3fmt9Formatter3pad17h9b2b3a0e5b4d1b31E",
            b"_RNvNtCs1234_7mycrate3foo3bar _RINvNtC3std3mem8align_ofdE _RNCNvC4core4main0B3_",
            b"_ZZN1AcvT_IiEEvE1x_0 _ZTv0_n24_N3foo3barEv _ZNKSt8functionIFvDpT_EEclEz",
        )
    )


def perf_map_seeds() -> Iterator[bytes]:
    """Lines as CPython and node write them."""
    yield b"".join(b"%x %x py::name%d:/srv/x.py\n" % (n << 12, 0x800, n) for n in range(40))
    yield b"1000 20 LazyCompile:*x file.js:1\n1010 30 later\nff0 100 around\n"


def jitdump_seeds() -> Iterator[bytes]:
    """A header, code with names, code that moves, and the end."""
    code = b"\x90" * 32
    yield b"".join(
        (
            jitdump.header(),
            jitdump.load(1, 0x1000, 32, 1, b"first", code=code),
            jitdump.debug_info(2, 0x1000, [(0x1000, 3, b"x.js"), (0x1010, 4, b"x.js")]),
            jitdump.load(3, 0x2000, 32, 2, b"second", code=code),
            jitdump.move(4, 0x1000, 0x3000, 32, 1),
            jitdump.unwinding_info(5),
            jitdump.close(6),
        )
    )


def object_seeds() -> Iterator[bytes]:
    """The shipped objects, and those of the tests."""
    for folder in ("purebpf/objects", "tests/data"):
        for path in sorted((ROOT / folder).glob("**/*.bpf.o")):
            yield path.read_bytes()


def btf_seeds() -> Iterator[bytes]:
    """The types in an object, as if they were a kernel's, and a made-up kernel's."""
    elf = ElfObject(_core_object(), "x")
    section = elf.find(".BTF")
    assert section is not None
    yield bytes(elf.contents(section))
    for seed in range(3):
        yield random_kernel(seed).bytes()


Change = Callable[[bytes, random.Random], bytes]
TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], Iterator[bytes]], Change]] = {
    "perf_data": (run_perf_data, perf_data_seeds.files, changed_bytes),
    "json": (run_profile, profile_seeds, changed_json),
    "folded": (run_profile, folded_seeds, changed_bytes),
    "pprof": (run_profile, pprof_seeds, changed_bytes),
    "speedscope": (run_profile, speedscope_seeds, changed_json),
    "perf_script": (run_profile, script_seeds, changed_bytes),
    "elf": (run_elf, elf_seeds, changed_bytes),
    "names": (run_names, name_seeds, changed_bytes),
    "perf_map": (run_perf_map, perf_map_seeds, changed_bytes),
    "jitdump": (run_jitdump, jitdump_seeds, changed_bytes),
    "inspect": (run_inspect, object_seeds, changed_bytes),
    "sections": (run_sections, object_seeds, changed_bytes),
    "recording": (run_recording, perf_data_seeds.files, changed_bytes),
    "calls": (hostile.run_call, hostile.call_seeds, hostile.changed_call),
    "proc": (hostile.run_proc, hostile.name_seeds, changed_bytes),
    "python": (interpreters.run_python, interpreters.seeds, interpreters.changed_seed),
    **{
        name: (partial(interpreters.run_dump, name), interpreters.seeds, interpreters.changed_seed)
        for name in interpreters.PROGRAMS
    },
    "dns": (hostile.run_dns, hostile.dns_seeds, changed_bytes),
    "probes": (hostile.run_probes, elf_seeds, changed_bytes),
    "dwarf": (hostile_dwarf.run_dwarf, hostile_dwarf.dwarf_seeds, hostile_dwarf.changed_dwarf),
    "lines": (hostile.run_lines, hostile.line_seeds, changed_bytes),
    "window": (hostile_agent.run_window, hostile_agent.window_seeds, changed_bytes),
    "agent_config": (
        hostile_agent.run_configuration,
        hostile_agent.configuration_seeds,
        changed_bytes,
    ),
    "load": (run_load, object_seeds, changed_bytes),
    "btf": (run_btf, btf_seeds, changed_bytes),
}


def answer(target: str, data: bytes) -> bool:
    """Run one file; whether it was accepted.

    Raises:
        Exception: anything but an error of ours is a finding.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST_S)
    try:
        TARGETS[target][0](data)
    except PurebpfError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return True


def search(target: str, seconds: float, first_seed: int) -> int:
    """Run changed files until the time is over or one is a finding: exit status 1."""
    _, make, change = TARGETS[target]
    files = list(make())
    for data in files:
        answer(target, data)
    end = time.monotonic() + seconds
    seed, accepted = first_seed, 0
    while time.monotonic() < end:
        chance = random.Random(seed)
        data = change(chance.choice(files), chance)
        try:
            accepted += answer(target, data)
        except BaseException:  # noqa: BLE001 - whatever it is
            name = f"{target}-crash-{hashlib.sha256(data).hexdigest()[:12]}"
            Path(name).write_bytes(data)
            traceback.print_exc()
            print(f"seed {seed}: {Path(name).absolute()}")
            return 1
        seed += 1
    print(
        f"{target}: {seed - first_seed} files in {seconds:.0f} s ({time.process_time():.0f} s of "
        f"CPU), {accepted} accepted, 0 findings"
    )
    return 0


def _too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"took more than {_LONGEST_S} seconds of CPU")


def main() -> int:
    """Search, or run one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("file", nargs="?", help="run these bytes once")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first change (default: 0)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    signal.signal(signal.SIGVTALRM, _too_long)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, most))
    proc.kallsyms = cache(proc.kallsyms)  # 5 MB that change little
    if options.file:
        accepted = answer(options.target, Path(options.file).read_bytes())
        print("accepted" if accepted else "refused")
        return 0
    return search(options.target, options.seconds, options.seed)


if __name__ == "__main__":
    sys.exit(main())
