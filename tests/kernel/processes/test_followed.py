"""`Followed` keeps the mappings of all, and tells a receiver of those only that it follows."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing

import pytest

from purebpf.kernel.processes.process_tracker import Followed
from purebpf.symbols.address_spaces import MappedCode
from purebpf.wire.perf_records import Exit

pytestmark = pytest.mark.needs("perf_event")

TRUE = os.path.realpath("/bin/true")


def test_the_receiver_gets_mappings_of_followed_processes_only() -> None:
    told: list[object] = []
    with closing(Followed()) as followed:
        first, second = (subprocess.Popen([TRUE]) for _ in range(2))
        first.wait()
        second.wait()
        followed.drain(told.append, {second.pid})
        spaces = followed.spaces
        paths = [{m.file.path for m in spaces.files(child.pid)} for child in (first, second)]
    assert TRUE in paths[0], "of a process that is not followed, too"
    assert paths[0] == paths[1]
    mapped = {record.pid for record in told if isinstance(record, MappedCode)}
    assert mapped == {second.pid}
    ended = {record.pid for record in told if isinstance(record, Exit)}
    assert {first.pid, second.pid} <= ended
