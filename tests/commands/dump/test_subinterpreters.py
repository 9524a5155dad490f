"""`purebpf dump` shows the frames of each interpreter that a thread runs, and all interpreters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from purebpf.tools.dump import session
from purebpf.tools.dump.model import ProcessDump
from purebpf.tools.dump.render import lines
from tests.support.programs import pythons

pytestmark = pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf")
NEW = [
    pytest.param(each, id=f"{each.version[1]}-{each.path}")
    for each in pythons.every()
    if each.version >= (3, 12)
]
PROGRAM = """
import os, sys, threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
INNER = '''
import os, time
def leaf_{number}():
    os.write({ready}, b"!")
    if {sleeps}:
        time.sleep(1000)
    while True:
        pass
def middle_{number}():
    leaf_{number}()
middle_{number}()
'''
asked, ready = os.pipe()
run = getattr(interpreters, "exec", interpreters.run_string)

def host(number):
    run(interpreters.create(), INNER.format(number=number, ready=ready, sleeps=number == 1))

interpreters_without_a_thread = [interpreters.create()]
for number in (1, 2):
    threading.Thread(target=host, args=(number,), daemon=True).start()
for _ in range(2):
    os.read(asked, 1)
print("ready", flush=True)
threading.Event().wait()
"""


def dump(python: pythons.Python, folder: Path) -> ProcessDump:
    path = folder / "program.py"
    path.write_text(PROGRAM)
    with subprocess.Popen([python.path, path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            return session.dump(process.pid, kernel=False)
        finally:
            os.kill(process.pid, 9)


@pytest.mark.parametrize("python", NEW)
def test_frames_of_a_subinterpreter_stand_on_their_callers(
    python: pythons.Python, tmp_path: Path
) -> None:
    dumped = dump(python, tmp_path)
    chains = {}
    for thread in dumped.threads:
        names = [frame.name for frame in thread.frames if frame.kind == "python"]
        if names and names[0].startswith("leaf"):
            chains[names[0]] = names, thread.interpreter
    assert chains.keys() == {"leaf_1", "leaf_2"}
    for number in "12":
        names, interpreter = chains[f"leaf_{number}"]
        inner = [f"leaf_{number}", f"middle_{number}", "<module>"]
        assert names[:4] == [*inner, "host"], names
        assert interpreter > 0


@pytest.mark.parametrize("python", NEW[-1:])
def test_interpreters_without_a_thread_are_listed(python: pythons.Python, tmp_path: Path) -> None:
    dumped = dump(python, tmp_path)
    assert "4 interpreters: 0 (main), 1, 2, 3" in "".join(lines(dumped))
