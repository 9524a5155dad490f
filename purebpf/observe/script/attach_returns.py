"""`attach_returns`: attaches the program of a uretprobe."""

from __future__ import annotations

from purebpf.loader.attach import uprobe
from purebpf.loader.attach._common.probe_place import ProbePlaces, find_places
from purebpf.loader.features.features import have_attach_cookie
from purebpf.loader.programs.attachments import Attachments
from purebpf.loader.programs.program import Program
from purebpf.observe.script.return_probes import find_returns
from purebpf.observe.script.unsafe_return import UnsafeReturnError
from purebpf.script.point import Point

__all__ = ["attach_returns"]

_EVERY_PROCESS = -1


def attach_returns(
    program: Program, point: Point, pid: int, links: Attachments, *, is_unsafe: bool
) -> None:
    """Attach to the `ret` instructions of a function, or else to its return.

    Raises:
        UnsafeReturnError: the returns of the function cannot be traced safely.
        AttachError, KernelError, NotSupportedError: the kernel refuses.
    """
    only = pid or _EVERY_PROCESS
    places = find_places(point.target, point.name)
    try:
        returns = find_returns(places, point.name, pid)
    except UnsafeReturnError:
        if not is_unsafe:
            raise
        returns = None
    if returns is None:
        links.own(uprobe.attach_at(program, places, point.name, pid=only, returns=True))
        return
    has_cookies = bool(have_attach_cookie())
    for offset in returns:
        at = ProbePlaces(places.path, places.identity, [offset])
        cookie = offset - places.offsets[0] if has_cookies else 0  # for `func`
        links.own(uprobe.attach_at(program, at, point.name, pid=only, returns=False, cookie=cookie))
