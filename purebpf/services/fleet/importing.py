"""Files instead of messages: windows that an agent wrote into a directory, and saved profiles."""

from __future__ import annotations

import gzip
import io
import os
import time
from collections.abc import Sequence
from hashlib import blake2b

from purebpf.errors import FormatError
from purebpf.results import Profile
from purebpf.services.fleet.decode import RefusedError, decode
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch, Delivery, Ids
from purebpf.services.fleet.stores.store import Store

__all__ = ["import_files"]

_MOST_BYTES = 1 << 28
_MOST_ROWS = 500_000
_SECOND_NS = 10**9
_PERIOD_HZ = 99


def import_files(
    store: Store, paths: Sequence[str], *, service: str = "", host: str = ""
) -> tuple[int, int]:
    """Store the content of files; return how many windows and rows that were.

    Args:
        store: the store; made if it is not there.
        paths: files of an agent's directory (`*.otlp.gz`), or profiles of any format that
            `purebpf convert` reads, which are a window that ends when the file was written.
        service: the service of profiles; else the names of their processes.
        host: the host of profiles; else this machine.

    Raises:
        FormatError: a file is something else; those before it are stored.
        StoreError: this process may not create the store, or another user could move its files.
        OSError: a file cannot be read, or there is no room.
    """
    store.prepare()
    windows = rows = 0
    batch, known = Batch({}), dict[str, Ids]()
    for path in paths:
        for delivery in _read(path, service, host):
            batch.add(delivery)
            windows += 1
            rows += len(delivery.samples)
        if batch.rows > _MOST_ROWS:
            land(store, batch, new_batch_id())
            batch.stored()
            batch = Batch(known)
    if batch.hours:
        land(store, batch, new_batch_id())
    return windows, rows


def _read(path: str, service: str, host: str) -> list[Delivery]:
    if not path.endswith((".otlp.gz", ".otlp")):
        return _read_profile(path, service, host)
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    try:
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(_MOST_BYTES)
        return decode(data, now_ns=time.time_ns())
    except (RefusedError, OSError, EOFError) as error:
        raise FormatError(path, f"{len(data)} bytes", str(error)) from error


def _read_profile(path: str, service: str, host: str) -> list[Delivery]:
    """A saved profile, by way of the message that an agent would have made of it."""
    from purebpf.observe.saved import profile_loader
    from purebpf.results.formats.otlp import Series, Window, document
    from purebpf.results.formats.otlp_series import series_of

    profile = profile_loader.read(path)
    factor, duration_ns = _scale(profile)
    ended_ns = os.stat(path).st_mtime_ns
    window = Window(
        *(("samples", "count") if profile.unit == "samples" else ("cpu", "nanoseconds")),
        ended_ns - duration_ns,
        duration_ns,
        factor,
        (("purebpf.expected", profile.loss.expected or 0), ("purebpf.seen", profile.loss.seen)),
        blake2b(f"{path} {ended_ns}".encode(errors="surrogateescape"), digest_size=16).digest(),
    )
    name = host or os.uname().nodename
    rows = ((row, row.weight) for row in profile.rows())
    series: list[Series] = series_of(
        rows,
        lambda labels: (("service.name", service or labels.process_name), ("host.name", name)),
    )
    return decode(document(window, series), now_ns=time.time_ns())


def _scale(profile: Profile) -> tuple[int, int]:
    """Nanoseconds that a weight counts, and how long the run was."""
    if profile.unit not in ("samples", "ns"):
        raise FormatError(
            str(profile.title), "unit", f"it counts {profile.unit}: a store has CPU time"
        )
    hertz = profile.about.get("frequency_hz") or profile.about.get("frequency") or _PERIOD_HZ
    duration_s = profile.about.get("duration_s") or profile.about.get("elapsed_s") or 60
    period = round(_SECOND_NS / float(str(hertz))) if profile.unit == "samples" else 0
    return period, round(float(str(duration_s)) * _SECOND_NS)
