"""Count the functions and the changes of file between an object's spec and its attached links.

    python scripts/measure_walk.py                            tests/data/stream_calls.bpf.o
    python scripts/measure_walk.py OBJECT.bpf.o --loaded      up to the loaded object only
    python scripts/measure_walk.py OBJECT.bpf.o --read        from the file on: read_object too
    python scripts/measure_walk.py OBJECT.bpf.o --list        each call, in order
    python scripts/measure_walk.py --profile PID              `purebpf profile -p PID 1`: OBSERVE

The walk is what a reader follows: `load(spec)`, then `Object.attach()`. Counted are the functions
of purebpf that are called, and how often a call leads into another file than the call before it.
Comprehensions and lambdas belong to the function they stand in; finalizers and what runs while a
module is imported are not part of the walk. The second load of a process is measured: the first one
also reads what the process keeps. docs/architecture.md draws the walk; needs CAP_BPF.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PACKAGE = f"{ROOT}/purebpf/"
OBJECT = ROOT / "tests/data/stream_calls.bpf.o"
_NO_STEPS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>", "__del__"})


class Walk(NamedTuple):
    """The calls, `file:function`, in order; files below purebpf/."""

    calls: tuple[str, ...]

    @property
    def functions(self) -> dict[str, None]:
        """Each function once, in the order of first calls."""
        return dict.fromkeys(self.calls)

    @property
    def files(self) -> dict[str, None]:
        """Each file once, as `functions`."""
        return dict.fromkeys(call.partition(":")[0] for call in self.calls)

    @property
    def changes(self) -> int:
        """How often a call leads into another file than the one before it."""
        files = [call.partition(":")[0] for call in self.calls]
        return sum(before != after for before, after in pairwise(files))

    def __str__(self) -> str:
        functions, files = len(self.functions), len(self.files)
        return f"{functions} functions in {files} files, {self.changes} changes of file"


@contextmanager
def recorded() -> Iterator[list[str]]:
    """The calls of purebpf's functions inside the block."""
    calls: list[str] = []
    importing = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal importing
        code = frame.f_code
        if code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
            return
        names = {code.co_name, code.co_qualname}  # a constructor of purebpf.tuples is a lambda
        ours = code.co_filename.startswith(PACKAGE) and not names & _NO_STEPS
        if event == "call" and ours and not importing:
            calls.append(f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}")

    gc.collect()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def measure(path: Path, *, read: bool = False, attach: bool = True) -> Walk:
    """Walk from a spec, or from its file, to attached links, or to the loaded object."""
    import purebpf

    load: Callable[..., Any] = purebpf.load
    read_object: Callable[..., Any] = purebpf.read_object
    spec = read_object(path)
    with load(spec) as loaded:
        if attach:
            loaded.attach()
    del loaded
    with recorded() as calls:
        loaded = load(read_object(path) if read else spec)
        if attach:
            loaded.attach()
    loaded.close()
    return Walk(tuple(calls))


def measure_profile(pid: int) -> Walk:
    """Walk from the command line of `purebpf profile -p PID 1` to its output."""
    from purebpf.tools.profile.__main__ import main as profile

    with recorded() as calls:
        profile(["-p", str(pid), "1"])
    return Walk(tuple(calls))


def main(argv: list[str] | None = None) -> int:
    """Print the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("object", type=Path, nargs="?", default=OBJECT)
    parser.add_argument("--read", action="store_true", help="begin with the file")
    parser.add_argument("--loaded", action="store_true", help="end with the loaded object")
    parser.add_argument("--list", action="store_true", help="each call, in order")
    parser.add_argument("--profile", metavar="PID", type=int, help="the OBSERVE walk instead")
    options = parser.parse_args(argv)
    if options.profile is None:
        name = options.object.name
        walk = measure(options.object, read=options.read, attach=not options.loaded)
    else:
        name = f"profile -p {options.profile} 1"
        walk = measure_profile(options.profile)
    if options.list:
        print("\n".join(walk.calls))
    print(f"{name}: {walk}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
