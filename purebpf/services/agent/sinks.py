"""The sinks of windows: a directory, OTLP over HTTP, Pyroscope, Parca. One call sends one
window.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress

from purebpf.services.agent.config import Sink
from purebpf.services.agent.outcome import Delivery, Outcome
from purebpf.services.agent.write_in import write_in

__all__ = ["make_sink"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def make_sink(sink: Sink) -> Delivery:
    """Return the sender for a sink of the configuration."""
    if sink.type == "dir":
        return Directory(sink)
    from purebpf.services.agent.http_sinks import Otlp, Parca, Pyroscope  # TLS and HTTP take 8 MB

    makers: dict[str, Callable[[Sink], Delivery]] = {
        "otlp": Otlp,
        "pyroscope": Pyroscope,
        "parca": Parca,
    }
    return makers[sink.type](sink)


class Directory:
    """Files in a directory, one a window: DIR/YYYY-MM-DD/HOST/NAME."""

    def __init__(self, sink: Sink) -> None:
        self._path = sink.path

    def send(self, name: str, data: bytes) -> Outcome:
        """Write it; a file with that name is the same window, sent before."""
        day = f"{name[:4]}-{name[4:6]}-{name[6:8]}"
        folder = os.path.join(self._path, day, os.uname().nodename)
        try:
            os.makedirs(self._path, exist_ok=True)
            with ExitStack() as stack:
                at = os.open(self._path, _FOLDER)
                stack.callback(os.close, at)
                for part in (day, os.uname().nodename):
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                    at = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                    stack.callback(os.close, at)
                write_in(at, name, data)
        except OSError as error:
            return Outcome(why=f"{folder}: {error.strerror}")
        return Outcome(is_done=True)
