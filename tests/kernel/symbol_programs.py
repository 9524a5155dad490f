"""Programs that say where their functions are and then wait to be looked at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline)) int local_function(int x) { return x * 3; }
__attribute__((noinline)) int global_function(int x) { return local_function(x) + 1; }

int main(int count, char **arguments) {
  printf("local_function %p\n", (void *)local_function);
  printf("global_function %p\n", (void *)global_function);
  printf("main %p\n", (void *)main);
  for (int i = 1; i < count; i++) {
    void *library = dlopen(arguments[i], RTLD_NOW);
    printf("exported %p\n", library ? dlsym(library, "exported") : 0);
  }
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0;
}
"""


class Running(NamedTuple):
    """A program that waits: its functions by name."""

    pid: int
    functions: dict[str, int]


def compile_program(target: Path, *flags: str, source: str = SOURCE, compiler: str = "gcc") -> Path:
    """Build `source` at `target`."""
    suffix = ".cc" if compiler == "g++" else ".c"
    file = target.with_suffix(suffix)
    file.write_text(source)
    subprocess.run([compiler, "-O1", *flags, "-o", target, file], check=True)
    return target


@contextmanager
def running(*command: str | Path, functions: int = 3, user: int | None = None) -> Iterator[Running]:
    """A program that has printed its functions; it ends with the block. `user`: runs it."""
    child = subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    try:
        lines = [child.stdout.readline().split() for _ in range(functions)]
        yield Running(child.pid, {name: int(address, 16) for name, address in lines})
    finally:
        child.communicate()
