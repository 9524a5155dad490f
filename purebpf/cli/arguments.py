"""Argument types that commands share, for `argparse`'s `type=`.

Each raises `argparse.ArgumentTypeError`, which argparse prints behind the option's name, with
exit status 2.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

__all__ = [
    "address",
    "cpu_list",
    "id_list",
    "milliseconds",
    "output",
    "positive_int",
    "seconds",
    "user_id",
]

_MAX_ID = 1 << 22  # PID_MAX_LIMIT: no process or thread has a greater number
_MAX_CPU = 1 << 16
_MAX_INT = (1 << 63) - 1
_MAX_SECONDS = 10 * 365 * 86400
_IN_SECONDS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_IN_MILLISECONDS = {"": 1.0, "ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_MAX_MILLISECONDS = 1e12  # in nanoseconds 64 bits


def positive_int(text: str) -> int:
    """A whole number above zero."""
    value = _integer(text, "a whole number")
    if value <= 0:
        raise ArgumentTypeError(f"{text!r} must be above zero")
    if value > _MAX_INT:
        raise ArgumentTypeError(f"{text!r} is too large (maximum {_MAX_INT})")
    return value


def seconds(text: str) -> float:
    """A duration in seconds: `5`, `0.5`, `500ms`, `5s`, `2m` or `1h`."""
    number = text.rstrip("numsh")
    try:
        value = float(number) * _IN_SECONDS[text[len(number) :]]
    except (KeyError, ValueError):
        raise ArgumentTypeError(
            f"{text!r} is not a duration such as 500ms, 5s or 2m (a number alone: seconds)"
        ) from None
    if not 0 < value <= _MAX_SECONDS:
        raise ArgumentTypeError(f"{text!r} must be above zero and at most ten years")
    return value


def milliseconds(text: str) -> float:
    """A duration in milliseconds: `10ms`, `500us`, `1.5s`, or a number of them; or zero."""
    number = text.rstrip("nums")
    try:
        value = float(number) * _IN_MILLISECONDS[text[len(number) :]]
    except (KeyError, ValueError):
        raise ArgumentTypeError(
            f"{text!r} is not a time such as 500us, 10ms or 2s (a number alone: milliseconds)"
        ) from None
    if not 0 <= value <= _MAX_MILLISECONDS:
        raise ArgumentTypeError(f"{text!r} must be zero or more milliseconds, and at most 30 years")
    return value


def id_list(text: str) -> tuple[int, ...]:
    """Process or thread ids separated by commas: `185,2040`."""
    ids = []
    for part in text.split(","):
        value = _integer(part, "a PID")
        if not 0 < value <= _MAX_ID:
            raise ArgumentTypeError(f"invalid PID {part!r} (expected 1 to {_MAX_ID})")
        ids.append(value)
    return tuple(dict.fromkeys(ids))


def cpu_list(text: str) -> tuple[int, ...]:
    """CPU numbers as the kernel lists them: `0-3,8`."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = _integer(first, "a CPU number")
        end = _integer(last, "a CPU number") if dash else start
        if not 0 <= start <= end < _MAX_CPU:
            raise ArgumentTypeError(f"{part!r} is not a CPU or a range of CPUs such as 0-3")
        cpus.update(range(start, end + 1))
    return tuple(sorted(cpus))


def address(text: str) -> tuple[str, int]:
    """Parse the address to listen at: `ADDR:PORT`, `:PORT` or `ADDR:` (port 0: any free);
    `[::1]:80` for IPv6.
    """
    host, colon, port = text.rpartition(":")
    number = _integer(port, "a port") if port and colon else 0
    if not colon or not 0 <= number < 1 << 16:
        raise ArgumentTypeError(f"{text!r} is not an address such as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", number


def output(text: str) -> str | None:
    """The file that a result goes to; `-`, standard output, is None."""
    return None if text == "-" else text


def user_id(text: str) -> int:
    """A user's number by name, or the number itself, for argparse."""
    if text.isascii() and text.isdigit() and int(text) < 1 << 32:
        return int(text)
    import pwd

    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        raise ArgumentTypeError(f"unknown user {text!r}") from None


def _integer(text: str, what: str) -> int:
    # int() alone would take " 1", "1_000" and the digits of every script
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)
