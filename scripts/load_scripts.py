"""Compile and load public scripts in bpftrace's language; nothing is attached, and no block runs.

    python scripts/load_scripts.py FOLDER ... [--kernel 6.12] [--part 1/6] [--json RESULTS.json]

A FOLDER has a copy of one of the repositories that tests/data/bpftrace_scripts.txt names. Files
that end in .bt are scripts, and `bpftrace -e '...'` in texts and shell scripts are one-liners.
Texts that are equal but for blanks and comments are taken once. With --kernel, they are loaded in
that guest. Needs root.

The verdicts: loaded; refused, before loading, with the place in the script; kernel, if the kernel
lacks or forbids something whatever the code is; and verifier, for refused code, of which there may
be none: then the exit status is 1.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import select
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from purebpf.errors import PurebpfError, VerifierError  # noqa: E402
from purebpf.measure.limits import raise_open_files  # noqa: E402
from purebpf.observe.script.local_host import LocalHost  # noqa: E402
from purebpf.observe.script.session import ScriptSession  # noqa: E402
from purebpf.script.compilation import compile_script  # noqa: E402
from purebpf.script.script_error import ScriptError  # noqa: E402
from purebpf.script.settings import Settings  # noqa: E402
from purebpf.tools.script.stacks import link_stacks  # noqa: E402

_TEXTS = (".md", ".sh", ".txt", ".rst", ".adoc", ".org")
_ONE_LINER = re.compile(
    r"bpftrace(?:\s+-[a-zA-Z]+(?:\s+\d+)?)*?\s+(?:--unsafe\s+)?-e\s+"
    r"(?:'([^']+)'|\"((?:[^\"\\]|\\.)*)\")"
)
_SKIPPED = re.compile(r"(?ms)/\*.*?\*/|^\s*//.*?$|^#!.*?$|\s")
"""Comments and blanks."""
_PATIENCE_S = 120.0
_GUEST_S = 7200.0


def find_texts(folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield names and texts, different ones only."""
    seen = set()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            for text in _read(path):
                bare = _SKIPPED.sub("", text)
                if bare not in seen:
                    seen.add(bare)
                    yield f"{folder.name}/{path.relative_to(folder)}", text


def _read(path: Path) -> Iterator[str]:
    if not path.is_file() or path.suffix not in (".bt", *_TEXTS):
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".bt":
        yield text
        return
    for found in _ONE_LINER.finditer(text):
        quoted, escaped = found.groups()
        yield quoted or re.sub(r'\\(["$`\\])', r"\1", escaped)


def judge(text: str) -> tuple[str, str]:
    """Compile and load a script; return the verdict and the reason."""
    try:
        compilation = compile_script(text, LocalHost(0), Settings(is_unsafe=True))
        link = partial(link_stacks, pids={os.getpid()})
        with ScriptSession(compilation, str, str, link_stacks=link):
            return "loaded", ""
    except ScriptError as error:
        return "refused", error.message
    except VerifierError as error:
        return ("kernel" if error.errno == errno.EPERM else "verifier"), f"{error}\n{error.log}"
    except PurebpfError as error:
        return "kernel", str(error)


def judge_apart(text: str) -> tuple[str, str]:
    """Judge a script in a child, which may take its time, and no more than that."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), sys.stdout.fileno())
            os.write(writer, json.dumps(judge(text)).encode()[: 1 << 15])
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        if not select.select([pipe], [], [], _PATIENCE_S)[0]:
            os.kill(pid, signal.SIGKILL)
        data = pipe.read()
    os.waitpid(pid, 0)
    try:
        verdict, reason = json.loads(data)
    except ValueError:
        return "ended", "it took too long, or the process died"
    return verdict, reason


def _load_here(texts: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    raise_open_files()
    rows = []
    for name, text in texts:
        verdict, reason = judge_apart(text)
        rows.append({"name": name, "verdict": verdict, "reason": reason, "text": text})
        if verdict not in ("loaded", "refused"):
            first = reason.partition("\n")[0]
            print(f"{verdict}: {name}: {first[:200]}", flush=True)
    return rows


def _load_in_guest(options: argparse.Namespace) -> list[dict[str, str]]:
    from tests.vm import guest, kernels

    out = ROOT / "build" / "scripts" / options.kernel
    words = [sys.executable, __file__, *(str(path.resolve()) for path in options.folders),
             "--part", options.part, "--json", "/run/out/results.json"]  # fmt: skip
    command = f"ulimit -n 20000\n{shlex.join(words)}"
    outcome = guest.run(kernels.fetch(options.kernel), command, out, timeout_s=_GUEST_S)
    print(outcome.output)
    rows: list[dict[str, str]] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return rows


def main(argv: Sequence[str]) -> int:
    """Load the scripts, print how many have each verdict, and return 1 if code was refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--kernel", metavar="SERIES", help="load them in this guest")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth script")
    parser.add_argument("--json", type=Path, help="where the verdicts go")
    options = parser.parse_args(argv)
    if options.kernel:
        rows = _load_in_guest(options)
    else:
        number, parts = map(int, options.part.split("/"))
        rows = _load_here(list(find_texts(options.folders))[number - 1 :: parts])
    if options.json is not None:
        options.json.write_text(json.dumps(rows), encoding="utf-8")
    counts = Counter(row["verdict"] for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return int(any(counts[verdict] for verdict in ("verifier", "ended")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
