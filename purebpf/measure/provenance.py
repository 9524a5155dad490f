"""The origin of a saved result."""

from __future__ import annotations

import os
import time

from purebpf.loader.host.kernel_build_id import kernel_build_id

__all__ = ["origin"]


def origin(elapsed_s: float) -> dict[str, object]:
    """Host, kernel and time of a measurement that ends now, for `Profile.about`."""
    host = os.uname()
    return {
        "host": host.nodename,
        "kernel": f"{host.release} {host.machine}",
        "kernel_build_id": kernel_build_id().hex(),
        "started_s": round(time.time() - elapsed_s, 3),
        "elapsed_s": round(elapsed_s, 3),
    }
