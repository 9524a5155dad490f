"""Links that end together."""

from __future__ import annotations

from threading import Barrier

import pytest

from purebpf.loader.programs.attachments import Attachments
from purebpf.loader.programs.link import Link


class Companion:
    """Something else that ends with the links."""

    def __init__(self, ended: list[str]) -> None:
        self.ended = ended

    def close(self) -> None:
        self.ended.append("companion")


def test_many_links_end_at_the_same_time() -> None:
    barrier = Barrier(6)  # breaks, and raises, if fewer links wait in it for five seconds
    with Attachments() as attachments:
        links = [
            attachments.own(Link(f"link {number}", undo=lambda: barrier.wait(5) and None))
            for number in range(24)
        ]
    assert all(link.closed for link in links)
    assert not barrier.broken


def test_companions_end_before_links_and_both_end_once() -> None:
    ended: list[str] = []
    attachments = Attachments()
    attachments.own(Link("a link", undo=lambda: ended.append("link")))
    attachments.own(Companion(ended))  # type: ignore[type-var]
    attachments.end()
    attachments.close()
    assert ended == ["companion", "link"]


def test_an_error_of_a_companion_leaves_no_link_open() -> None:
    attachments = Attachments()
    link = attachments.own(Link("a link", undo=lambda: None))

    class Broken:
        def close(self) -> None:
            raise OSError("cannot")

    attachments.own(Broken())  # type: ignore[type-var]
    with pytest.raises(OSError, match="cannot"):
        attachments.close()
    assert link.closed
