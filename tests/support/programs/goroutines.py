"""A Go program whose goroutines wait: for a mutex, to send, to receive, to send in a function that
is inlined.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LOCKING", "PASSING", "RECEIVING", "SENDING", "waiting"]

LOCKING, SENDING, RECEIVING, PASSING = 7, 5, 3, 2
SOURCE = f"""
package main

import (
	"fmt"
	"sync"
	"time"
)

var (
	lock sync.Mutex
	full = make(chan int)
	empty = make(chan int)
)

func takeLock() {{ lock.Lock(); lock.Unlock() }}
func sendItem() {{ full <- 1 }}
func awaitItem() {{ <-empty }}

func putItem(item int) {{ full <- item }}

//go:noinline
func passItem() {{ putItem(2) }}

func main() {{
	lock.Lock()
	for i := 0; i < {LOCKING}; i++ {{ go takeLock() }}
	for i := 0; i < {SENDING}; i++ {{ go sendItem() }}
	for i := 0; i < {RECEIVING}; i++ {{ go awaitItem() }}
	for i := 0; i < {PASSING}; i++ {{ go passItem() }}
	time.Sleep(200 * time.Millisecond)
	fmt.Println("ready")
	fmt.Scanln()
}}
"""


def _build(folder: Path, *flags: str) -> Path:
    (folder / "waits.go").write_text(SOURCE)
    env = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    subprocess.run(["go", "build", *flags, "waits.go"], cwd=folder, env=env, check=True)
    return folder / "waits"


@contextmanager
def waiting(folder: Path, *flags: str) -> Iterator[int]:
    """Build it with these flags of the linker, and run it: its process ID."""
    program = _build(folder, *flags)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.kill()
