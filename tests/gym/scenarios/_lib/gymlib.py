"""What the scenarios of the gym share: build, spawn, load, READY, an end that leaves nothing behind.

A scenario's `start` does:

    with Scene(__file__) as scene:
        app = scene.spawn(["python3", "app.py", ...])
        load = scene.load(f"http://127.0.0.1:{port}/", rate=20)
        scene.ready(pid=app, load=load)

and lives until GYM_SECONDS (60) are over, or SIGTERM. Its processes are its descendants, also those
that daemonize (it is a subreaper), and are gone when it ends.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
LIB = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("GYM_CACHE", "/tmp/purebpf-gym-cache"))
PYTHON = os.environ.get("GYM_PYTHON") or sys.executable
SECONDS = float(os.environ.get("GYM_SECONDS", "60"))
system_python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
"""As the distribution built it."""


def descendants(root: int) -> list[int]:
    """Of this process, by parent, itself not among them."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found, queue = [], [root]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


class Scene:
    def __init__(self, start: str) -> None:
        self.here = Path(start).resolve().parent
        self.name = self.here.name
        self.python = PYTHON
        self.tmp = Path(tempfile.mkdtemp(prefix=f"gym-{self.name}-"))
        self._cgroups: list[Path] = []
        self._files: list = []
        self._began = time.monotonic()

    def __enter__(self) -> Scene:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        self.tmp.chmod(0o755)
        return self

    def _stop(self, number: int, _frame: object) -> None:
        raise SystemExit(0)

    def __exit__(self, *exc: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._end_all()
        for cgroup in reversed(self._cgroups):
            for _ in range(50):
                try:
                    cgroup.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
        shutil.rmtree(self.tmp, ignore_errors=True)

    def _end_all(self) -> None:
        for number, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
            until = time.monotonic() + patience
            while time.monotonic() < until:
                alive = descendants(os.getpid())
                if not alive:
                    return
                for pid in alive:
                    try:
                        os.kill(pid, number)
                        os.kill(pid, signal.SIGCONT)
                    except OSError:
                        pass
                self._reap()
                time.sleep(0.1)

    def _reap(self) -> None:
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return
            except OSError:
                return

    # ---- build

    def build(self, output: str, argv: list[str], *sources: str) -> str:
        """The path of what `argv` makes of sources; `{out}` is where it shall write it. Cached."""
        text = "\0".join(argv).encode() + b"".join((self.here / s).read_bytes() for s in sources)
        folder = CACHE / f"{self.name}-{hashlib.sha256(text).hexdigest()[:12]}"
        out = folder / output
        if not out.exists():
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f"part-{os.getpid()}-{output}"
            argv = [word.replace("{out}", str(part)).replace("{dir}", str(folder)) for word in argv]
            env = {
                **os.environ,
                "GOCACHE": str(CACHE / "go"),
                "GOFLAGS": "-mod=mod",
                "GO111MODULE": "off",
            }
            subprocess.run(["nice", *argv], cwd=self.here, check=True, env=env)
            if part.exists():
                part.rename(out)
        return str(out)

    def cxx(self, source: str, *flags: str) -> str:
        """A C++ program as distributions build: -O2, no frame pointers, symbols."""
        name = source.rpartition(".")[0]
        return self.build(
            name, ["g++", "-O2", "-std=c++17", "-pthread", *flags, "-o", "{out}", source], source
        )

    def cc(self, source: str, *flags: str) -> str:
        name = source.rpartition(".")[0]
        return self.build(name, ["gcc", "-O2", "-pthread", *flags, "-o", "{out}", source], source)

    def go(self, source: str, name: str) -> str:
        return self.build(name, ["go", "build", "-o", "{out}", source], source)

    def rust(self, source: str, name: str) -> str:
        return self.build(
            name,
            ["rustc", "-C", "opt-level=2", "--crate-name", name, "-o", "{out}", source],
            source,
        )

    def java(self, source: str) -> str:
        """The folder of its classes."""
        main = source.rpartition(".")[0]
        out = self.build(f"{main}.class", ["javac", "-g", "-d", "{dir}", source], source)
        return str(Path(out).parent)

    # ---- processes

    def spawn(
        self, argv: list[str], *, log: str = "", env: dict[str, str] | None = None, **more
    ) -> int:
        """Start it in the scenario's folder; what it writes goes to a file. Its PID."""
        out = more.pop("stdout", None)
        if out is None:
            out = open(self.tmp / (log or f"{Path(argv[0]).name}.log"), "ab")
            self._files.append(out)
        more.setdefault("cwd", self.here)
        process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=more.pop("stdin", subprocess.DEVNULL),
            stdout=out,
            stderr=more.pop("stderr", subprocess.STDOUT),
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
                **(env or {}),
            },
            start_new_session=True,
            **more,
        )
        self._files.append(process)
        return process.pid

    def load(self, url: str, *, rate: float = 20, clients: int = 4, timeout: float = 10) -> int:
        """Requests from `clients` threads, at most `rate` a second in all."""
        return self.spawn(
            [sys.executable, str(LIB / "load.py"), url, str(rate), str(clients), str(timeout)],
            log="load.log",
        )

    def port(self) -> int:
        """A free one."""
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            return sock.getsockname()[1]

    def wait_port(self, port: int, seconds: float = 40) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{self.name}: nothing listens on port {port}; see {self._logs()}")

    def _logs(self) -> str:
        return "\n".join(
            f"{path}: {path.read_text(errors='replace')[-600:]}" for path in self.tmp.glob("*.log")
        )

    def cgroup(self, controller: str, **values: str) -> Path:
        """A new one, of v1 or v2; write PIDs to its cgroup.procs."""
        root = Path("/sys/fs/cgroup")
        base = root / controller if (root / controller).is_dir() else root
        path = base / f"gym-{self.name}-{os.getpid()}"
        path.mkdir()
        self._cgroups.append(path)
        for name, value in values.items():
            (path / name.replace("__", ".")).write_text(value)
        return path

    # ---- the end of start

    def ready(self, **numbers: int | str) -> None:
        """Say so, and live."""
        print("READY", *(f"{name}={value}" for name, value in numbers.items()), flush=True)
        until = time.monotonic() + SECONDS
        main = numbers.get("pid")
        while time.monotonic() < until:
            time.sleep(0.2)
            if isinstance(main, int) and not os.path.exists(f"/proc/{main}"):
                sys.exit(f"{self.name}: the service ended; {self._logs()}")


def enter(cgroup: Path):
    """For preexec_fn: the child is in it before its program starts."""

    def move() -> None:
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))

    return move
