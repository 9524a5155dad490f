"""One HTML file with a flame graph to search, zoom, turn and filter; it needs no network.

The page consists of the files in `page/`, unchanged. Its policy (CSP) allows its script and no
other, and no connection but, on the live page, to its own server. Names go into it as JSON and are
only ever displayed as text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from json import JSONEncoder
from typing import Any

from purebpf.results.model.profile import Profile
from purebpf.results.shape import page_facts
from purebpf.results.shape.page_data import Packed, pack

__all__ = ["comparison", "list_style", "live_page", "page", "second"]

_SCRIPTS = (
    *("model", "tree", "draw", "picture", "search", "table", "filters", "timeline", "save", "live"),
    *("header", "menu", "address", "wording", "panels", "app", "input", "start"),
)


def page(profile: Profile) -> str:
    """The whole file."""
    return _fill_template(page_facts.title(profile), pack(profile))


def comparison(before: Profile, after: Profile, title: str) -> str:
    """Return a page with `after`, coloured by the changes since `before`."""
    packed = pack(after, before)
    packed.head["title"] = title
    return _fill_template(title, packed)


def live_page(title: str) -> str:
    """A page that gets its stacks from `/events`, one `second` after the other."""
    return _fill_template(title, Packed({"live": True, "title": title}, ""), connect="'self'")


def list_style() -> str:
    """Return the style sheet of pages that list profiles."""
    return _read("list.css")


def second(profile: Profile, number: int, *, at_s: float, length_s: float) -> str:
    """The data of message `number` of the live page.

    Return one second of the live page: `at_s` is its end in seconds since the page began, and
    `length_s` its length: a message may be late.
    """
    packed = pack(profile)
    packed.head["functions"].pop("source", None)  # it may be another one each second
    packed.head.update(second=number, at_s=round(at_s, 3), length_s=round(length_s, 3))
    return _json({"head": packed.head, "bytes": packed.data})


def _fill_template(title: str, packed: Packed, connect: str = "'none'") -> str:
    script = "\n".join(['"use strict";', *(_read(f"{name}.js") for name in _SCRIPTS)])
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": escape(title),
        "STYLE": _read("page.css"),
        "HEAD": _json(packed.head).replace("<", "\\u003c"),
        "BYTES": packed.data,
        "SCRIPT": script,
    }
    pieces = _read("page.html").split("@")  # text, name, text, ...
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return "".join(pieces)


def _json(tree: Mapping[str, Any]) -> str:
    return JSONEncoder(separators=(",", ":")).encode(tree)


@cache
def _read(name: str) -> str:
    return files("purebpf.results.formats.page").joinpath(name).read_text(encoding="utf-8")
