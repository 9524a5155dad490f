"""What an agent has in memory for weeks: what it does not use is not imported."""

from __future__ import annotations

import subprocess
import sys

from tests.commands.conftest import ROOT

PROGRAM = """
import sys
from purebpf.services.agent.config import Sink
from purebpf.services.agent import session
from purebpf.services.agent.sinks import make_sink
make_sink(Sink("dir", path="/nowhere"))
waits = "purebpf.services.agent.waits"
print(*sorted({"ssl", "http.client", "hashlib", waits} & sys.modules.keys()))
make_sink(Sink("otlp", url="http://127.0.0.1:1"))
print("http.client" in sys.modules)
"""


def test_an_agent_that_writes_files_imports_no_http_client() -> None:
    words = [sys.executable, "-c", PROGRAM]
    answer = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert answer == "\nTrue\n"
