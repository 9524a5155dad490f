"""The goroutines of a live program, as Go itself has them."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from purebpf.observe.runtimes.golang.goroutines_now import find_goroutines, read_goroutines
from purebpf.observe.symbols.symbolizer import Symbolizer

LOCKING, SENDING, RECEIVING = 7, 5, 3
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

func main() {{
	lock.Lock()
	for i := 0; i < {LOCKING}; i++ {{ go takeLock() }}
	for i := 0; i < {SENDING}; i++ {{ go sendItem() }}
	for i := 0; i < {RECEIVING}; i++ {{ go awaitItem() }}
	time.Sleep(200 * time.Millisecond)
	fmt.Println("ready")
	fmt.Scanln()
}}
"""


def build(folder: Path, *flags: str) -> Path:
    (folder / "waits.go").write_text(SOURCE)
    env = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    subprocess.run(["go", "build", *flags, "waits.go"], cwd=folder, env=env, check=True)
    return folder / "waits"


@pytest.fixture
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    program = build(tmp_path, *request.param)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


@pytest.mark.needs("go")
@pytest.mark.parametrize("started", [(), ("-buildmode=pie",)], indirect=True)
def test_goroutines_that_wait_are_counted_by_function(started: int) -> None:
    listed = find_goroutines(started)
    assert listed is not None
    found, weight = read_goroutines(started, listed, 1000)
    names = Symbolizer()
    stacks = [names.user_stack(started, one.addresses) for one in found]
    own = Counter(
        frame.name for stack in stacks for frame in stack if frame.name.startswith("main.")
    )
    assert own == {"main.takeLock": LOCKING, "main.sendItem": SENDING, "main.awaitItem": RECEIVING}
    assert weight == 1.0
    assert all(stack[-1].name.startswith(("runtime.goexit", "runtime.main")) for stack in stacks)


@pytest.mark.needs("go")
@pytest.mark.parametrize("started", [("-ldflags=-s -w",)], indirect=True)
def test_a_program_without_symbols_has_no_list(started: int) -> None:
    assert find_goroutines(started) is None


def test_other_programs_have_no_goroutines() -> None:
    assert find_goroutines(os.getpid()) is None
