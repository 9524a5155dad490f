"""Hooks of mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["on_page_markdown"]


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Keep the text alone of links to files outside of docs/, which the site does not have."""
    outside = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\[([^]]*)\]\({outside}[^)]*\)", r"\1", markdown)
