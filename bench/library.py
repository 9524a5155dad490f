"""Whole user stacks of the library in programs that are installed, by kind of BPF program.

    python bench/library.py [--seconds 3] [NAME ...]

Each program runs in a cgroup of its own. Three BPF programs count its stacks in maps: one on a perf
event (199 Hz), one on a raw tracepoint (all system calls), and one on a uprobe at a function of the
C library. The table has the share of whole stacks of each, and how the others end. Programs that
are not installed are listed. Needs root, clang and a cgroup2 mount.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import purebpf
from bench.running import start, start_postgres
from bench.runtimes import WORKLOADS, build
from purebpf.loader.perf.perf_events import PerfEvents
from purebpf.spec import ObjectSpec
from purebpf.stacks import StackObject
from tests.support.host.cgroups import inside, made

Start = Callable[[ExitStack, Path], None]

CHECKOUT = Path(__file__).parents[1]
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
KINDS = ("samples", "calls", "probes")
C = r"""
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <purebpf/stacks.h>

const volatile __u64 group = 0;

#define COUNTED(section, name)                                                      \
	struct {                                                                    \
		__uint(type, BPF_MAP_TYPE_HASH);                                    \
		__uint(max_entries, 65536);                                         \
		__type(key, purebpf_stack);                                         \
		__type(value, __u64);                                               \
	} name##_stacks SEC(".maps");                                               \
	SEC(section) int name(void *ctx)                                            \
	{                                                                           \
		purebpf_stack stack;                                                \
		__u64 *count, one = 1;                                              \
		if (bpf_get_current_cgroup_id() != group)                           \
			return 0;                                                   \
		stack = user_stack(ctx);                                            \
		count = bpf_map_lookup_elem(&name##_stacks, &stack);                \
		if (count)                                                          \
			__sync_fetch_and_add(count, 1);                             \
		else                                                                \
			bpf_map_update_elem(&name##_stacks, &stack, &one, BPF_ANY); \
		return 0;                                                           \
	}

COUNTED("perf_event", samples)
COUNTED("raw_tracepoint/sys_enter", calls)
COUNTED("uprobe", probes)

char LICENSE[] SEC("license") = "GPL";
"""

BUILT = ("gcc -O2", "g++ -O2", "rustc -O", "go", "ocaml")
"""Programs of bench/runtimes.py."""

INTERPRETED = {  # they call getppid(2), R getpid(2), and bash write(2)
    "python": """
import os
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
while True: f(12); os.getppid(); "%d" % f(3)
""",
    "node": """
const f = n => n < 2 ? n : f(n - 1) + f(n - 2);
for (;;) { f(20); process.ppid }
""",
    "ruby": """
def f(n) = n < 2 ? n : f(n - 1) + f(n - 2)
loop { f(18).to_s * 3; Process.ppid }
""",
    "perl": """
sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) }
while (1) { f(15); getppid }
""",
    "Rscript": """
f <- function(n) if (n < 2) n else f(n - 1) + f(n - 2)
repeat { f(12); Sys.getpid() }
""",
    "php": """<?php
function f($n) { return $n < 2 ? $n : f($n - 1) + f($n - 2); }
for (;;) { f(15); getmypid(); posix_getppid(); }
""",
    "bash": """
f() { local a="$1$1"; echo "${a/x/y}"; }
while :; do f xyz; done
""",
}

_NGINX = """
cat > conf <<END
daemon off; master_process off; error_log stderr; pid $PWD/pid;
events {} http { access_log off; server { listen unix:$PWD/s; location / { return 200 x; } } }
END
nginx -c $PWD/conf &
while :; do curl -s --unix-socket $PWD/s http://a/[1-2000] -o /dev/null; done
"""
_REDIS = """
redis-server --save '' --port 0 --unixsocket $PWD/s & sleep 1
while :; do redis-benchmark -s $PWD/s -q -n 100000 -c 8; done
"""
_CC1 = r"""
printf '#include <algorithm>\n#include <regex>\nint main(){}' > a.cc
while :; do g++ -O2 -c a.cc; done
"""
_SQL = """
while :; do sqlite3 :memory: "WITH RECURSIVE c(x) AS
    (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000000) SELECT sum(x * x) FROM c"; done
"""
_FFMPEG = """
while :; do
    ffmpeg -v quiet -f lavfi -i testsrc=duration=20:size=640x480 -c:v mpeg4 -f null -
done
"""


class Installed(NamedTuple):
    """A script of sh that runs for ever, and the function of libc whose calls are counted."""

    name: str
    script: str
    function: str = "malloc"
    needs: str = ""


INSTALLED = (
    Installed("nginx", _NGINX, "writev"),
    Installed("redis", _REDIS, "write", "redis-server"),
    Installed("gcc (cc1plus)", _CC1, needs="g++"),
    Installed("ffmpeg", _FFMPEG),
    Installed("sqlite3", _SQL),
    Installed("openssl", "while :; do openssl genrsa 2048; done"),
    Installed("git", f"cd {CHECKOUT} && while :; do git log -p -n 2000; done"),
    Installed("xz", "while :; do head -c 30000000 /usr/bin/node | xz -c; done"),
)


class Share(NamedTuple):
    """The stacks of a kind: how many there were, how many were whole, and how the others ended."""

    count: int
    whole: int
    ends: Counter[str]

    def __str__(self) -> str:
        if not self.count:
            return "none"
        ends = ", ".join(f"{end} {count}" for end, count in self.ends.most_common(3))
        return f"{100 * self.whole / self.count:.1f} % of {self.count}{ends and f' ({ends})'}"


def programs(folder: Path) -> Iterator[tuple[str, str, Start | str]]:
    """Yield each program with its function, and how to start it, or why it is not measured."""
    for workload in WORKLOADS:
        if workload.name in BUILT:
            command = build(workload, folder)
            yield workload.name, "malloc", command if isinstance(command, str) else _starts(command)
    interpreters = {name: name for name in INTERPRETED} | {
        f"python {place.name}": str(place / "bin/python")
        for place in sorted(Path.home().glob(".pyenv/versions/*"))
    }
    for name, program in interpreters.items():
        script = folder / name.replace(" ", "-")
        script.write_text(INTERPRETED[name.partition(" ")[0]])
        starts = _starts((program, str(script)))
        function = {"Rscript": "getpid", "bash": "write"}.get(name, "getppid")
        yield name, function, starts if shutil.which(program) else f"{program} is not installed"
    for each in INSTALLED:
        needed = each.needs or each.name
        starts = _starts(("sh", "-c", each.script))
        yield each.name, each.function, starts if shutil.which(needed) else f"no {needed} here"
    yield "PostgreSQL", "pread64", start_pgbench if shutil.which("pgbench") else "no pgbench here"


def _starts(command: Sequence[str]) -> Start:
    def begin(owned: ExitStack, folder: Path) -> None:
        start(owned, [*command], cwd=folder)

    return begin


def start_pgbench(owned: ExitStack, folder: Path) -> None:
    """Start a server and pgbench."""
    client = "sleep 2; B='{place}/pgbench -h {socket} postgres'; $B -i; $B -T 600 -c 4"
    start_postgres(owned, folder, client)


def measure(starts: Start, function: str, seconds: float, code: ObjectSpec) -> list[Share]:
    """Start a program and count the stacks of each kind."""
    with made(name="purebpf-bench") as cgroup, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with ExitStack() as running:
            running.callback(empty, cgroup)
            with inside(cgroup):
                starts(running, Path(folder))
            time.sleep(3)
            with ExitStack() as owned, ExitStack() as links:
                spec = code.set(group=cgroup.stat().st_ino)
                loaded = owned.enter_context(purebpf.stacks.load(spec, cgroup=str(cgroup)))
                events = links.enter_context(PerfEvents.sampling(frequency=199))
                for event in events:
                    links.enter_context(loaded.programs["samples"].attach(event))
                links.enter_context(loaded.programs["calls"].attach())
                links.enter_context(loaded.programs["probes"].attach(f"{LIBC}:{function}"))
                loaded.settle(10)
                for kind in KINDS:
                    loaded.maps[f"{kind}_stacks"].clear()
                loaded.wait(seconds)
                links.close()
                loaded.wait(0.2)  # copies of the last stacks
                return [share(loaded, kind) for kind in KINDS]


def empty(cgroup: Path) -> None:
    """End all that runs in a cgroup."""
    (cgroup / "cgroup.kill").write_text("1")
    while "populated 1" in (cgroup / "cgroup.events").read_text():
        time.sleep(0.05)


def share(loaded: StackObject, kind: str) -> Share:
    """Return the share of whole stacks of a kind."""
    count = whole = 0
    ends: Counter[str] = Counter()
    for number, times in loaded.maps[f"{kind}_stacks"].items():
        end = loaded.stack(number).end
        count += times
        if end:
            ends[end] += times
        else:
            whole += times
    return Share(count, whole, ends)


def main() -> int:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    code = purebpf.read_object(purebpf.build.compile(C))
    print("| program | samples | system calls | calls of a function |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name, function, starts in programs(Path(folder)):
            if options.names and not any(asked in name for asked in options.names):
                continue
            if isinstance(starts, str):
                print(f"| {name} | not measured: {starts} | | |", flush=True)
                continue
            shares = measure(starts, function, options.seconds, code)
            print(f"| {name} | {' | '.join(map(str, shares))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
