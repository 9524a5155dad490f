"""Hooks of mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

from purebpf._version import __version__

__all__ = ["on_config", "on_page_content", "on_page_markdown", "on_post_page"]


def on_config(config: Any) -> Any:
    """Say at the foot of each page which version it describes."""
    config.copyright = f"purebpf {__version__}"
    return config


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Keep the text alone of links to files outside of docs/, which the site does not have."""
    outside = re.escape("../" * (page.file.src_uri.count("/") + 1))
    return re.sub(rf"\[([^]]*)\]\({outside}[^)]*\)", r"\1", markdown)


def on_page_content(html: str, **_: object) -> str:
    """Make cells of empty headers: a corner of a table has nothing below it to name."""
    return re.sub(r"<th[^>]*>\s*</th>", "<td></td>", html)


def on_post_page(output: str, **_: object) -> str:
    """Name the dialog of the search for people who hear the page."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
