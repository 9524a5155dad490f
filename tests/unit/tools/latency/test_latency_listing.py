"""`latency --list` ends with a sentence where the kernel does not tell its functions."""

from __future__ import annotations

import pytest

from purebpf.errors import KernelError, NotSupportedError
from purebpf.tools.latency import listing


@pytest.mark.parametrize(
    "refusal",
    [
        KernelError("read", 1, "tracefs available_filter_functions"),
        NotSupportedError("tracefs", "not mounted"),
    ],
)
def test_the_sentence_says_what_can_be_listed(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> set[str]:
        raise refusal

    monkeypatch.setattr(listing, "traceable", refuse)
    with pytest.raises(NotSupportedError, match=r"does not list its functions.*libc:"):
        list(listing.list_functions("vfs_*"))
