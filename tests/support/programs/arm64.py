"""Programs of arm64, built here for a guest that has no compiler.

    python -m tests.support.programs.arm64

leaves them in build/arm64, with their symbols (nm -n) beside them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.programs.stack_walks import LEAF, LEVELS

__all__ = ["FOLDER", "PROGRAMS", "build_all"]

FOLDER = Path(__file__).parents[3] / "build/arm64"

_COMPILER = ("aarch64-linux-gnu-gcc", "-O2", "-fomit-frame-pointer", "-w")
_CHAIN = LEAF + LEVELS + "int main(void) { for (;;) sink += level1(sink); }"
_DEEP = (
    LEAF
    + r"""
STEP unsigned long recurse(int depth, unsigned long x) {
  return depth ? recurse(depth - 1, x + depth) * 3 + leaf(depth) : leaf(x);
}
int main(void) { for (;;) sink += recurse(sink % 100, 3); }
"""
)
_SHAPES = (
    LEAF
    + LEVELS
    + r"""
STEP int compare(const void *a, const void *b) {
  sink += level1(*(unsigned long *)a);
  return *(unsigned long *)a < *(unsigned long *)b;
}
STEP void sorts(void) {
  unsigned long values[64];
  for (int i = 0; i < 64; i++) values[i] = rand();
  qsort(values, 64, 8, compare);
}
STEP void calls(void) { for (int i = 0; i < 99; i++) sink += getppid() + strlen((char *)"x"); }
STEP void handler(int signal) { for (int i = 0; i < 2000; i++) sink += leaf(i); }
int main(void) {
  static char alternate[65536];
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  struct itimerval often = {{0, 50000}, {0, 50000}};
  sigaltstack(&stack, 0);
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (;;) { sorts(); calls(); }
}
"""
)
_SLEEPS = (
    LEAF
    + LEVELS.replace("leaf(x + 5) + 5", "usleep(3000) + x")
    + ("int main(void) { for (;;) sink += level1(sink); }")
)
_WAITS = (
    LEAF
    + LEVELS.replace("leaf(x + 5) + 5", "read(7, &x, 1) + x")
    + ("int main(void) { dup2(0, 7); for (;;) sink += level1(sink); }")
)
_CLOCK = LEAF + "int main(void) { struct timespec t; for (;;) sink += clock_gettime(1, &t); }"

PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "chain": (_CHAIN, ()),
    "chain-static": (_CHAIN, ("-static",)),
    "chain-signed": (_CHAIN, ("-mbranch-protection=standard",)),
    "chain-fp": (_CHAIN, ("-fno-omit-frame-pointer",)),
    "deep": (_DEEP, ()),
    "shapes": (_SHAPES, ()),
    "shapes-lazy": (_SHAPES, ("-Wl,-z,lazy", "-mbranch-protection=standard")),
    "clock": (_CLOCK, ()),
    "sleeps": (_SLEEPS, ()),
    "waits": (_WAITS, ()),
    "waits-fp": (_WAITS, ("-fno-omit-frame-pointer", "-mbranch-protection=standard")),
}
"""Their sources, and flags beside -O2 -fomit-frame-pointer."""


def build_all(folder: Path = FOLDER) -> None:
    """Build those that are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (source, flags) in PROGRAMS.items():
        program = folder / name
        program.with_suffix(".c").write_text(source)
        subprocess.run([*_COMPILER, *flags, "-o", program, program.with_suffix(".c")], check=True)
        symbols = subprocess.run(["nm", "-n", program], capture_output=True, check=True).stdout
        program.with_suffix(".nm").write_bytes(symbols)


if __name__ == "__main__":
    sys.exit(build_all())
