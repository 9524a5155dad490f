"""An object closes all it has, whatever fails on the way."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from purebpf.errors import KernelError
from purebpf.loader.load.object import Object
from purebpf.loader.programs.link import Link
from purebpf.spec import ObjectSpec


def failing(what: str) -> Link:
    """A link that refuses to end."""

    def undo() -> None:
        raise KernelError(what, 2)

    return Link(what, undo=undo)


def test_all_links_are_closed_and_the_first_refusal_is_raised() -> None:
    ended: list[str] = []
    owned = ExitStack()
    owned.callback(ended.append, "maps")
    obj = Object(ObjectSpec("none", "", "little", "", {}, {}, {}, {}), {}, {}, owned)
    good = Link("good", undo=lambda: ended.append("good"))
    obj._links += [good, failing("second"), failing("first")]
    with pytest.raises(KernelError, match="first failed"):
        obj.close()
    assert good.closed
    assert ended == ["good", "maps"]
    obj.close()
