"""The common parts of every page: head, policy, form, end."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from http import HTTPStatus
from importlib.resources import files

from starlette.responses import HTMLResponse

from purebpf.results.formats.html import list_style
from purebpf.results.model.spelling import printable
from purebpf.services.fleet.rows import KINDS
from purebpf.services.fleet.web.fields import AGAINST, Asked

__all__ = ["END", "HEADERS", "begin", "choices", "message_page", "problem", "script", "text"]

HEADERS = {
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
END = "</main></body></html>\n"
_RANGES = ("15m", "1h", "6h", "24h", "7d")
_WHAT = {"cpu": "CPU time", "offcpu": "blocked", "runqueue": "run queue"}


def text(value: str) -> str:
    """Return a name as HTML: markup and cursor movements are spelt out."""
    return escape(printable(value))


def problem(words: str) -> str:
    """An error as a paragraph."""
    return f'<p class="problem" role="alert">{text(words)}</p>'


def begin(title: str, asked: Asked | None = None, path: str = "/") -> str:
    """A page up to its content; with the form if there is a question."""
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_script_hash()}'; "
        "form-action 'self'; base-uri 'none'"
    )
    form = "" if asked is None else _form(asked, path)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title><style>{list_style()}</style></head><body>
<header><h1><a href="/">purebpf fleet</a></h1><span class="soft">{text(title)}</span></header>
<main>{form}"""


def script() -> str:
    """The script that a page with a time line ends with."""
    return f"<script>{_read('page.js')}</script>"


def message_page(
    content: str, status: HTTPStatus, *, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A page with a few words, which are HTML."""
    return HTMLResponse(begin("") + content + END, status, {**HEADERS, **(headers or {})})


def choices(name: str, values: Sequence[str]) -> str:
    """Return the suggestions of a field."""
    options = "".join(f'<option value="{escape(value)}">' for value in values)
    return f'<datalist id="{name}s">{options}</datalist>'


def _form(asked: Asked, path: str) -> str:
    fields = "".join(
        f'<label{of}>{shown}<input name="{name}" value="{escape(getattr(asked, name))}"{more}>'
        "</label>"
        for name, shown, of, more in (
            ("since", "since (UTC)", ' class="time"', ""),
            ("until", "until", ' class="time"', ""),
            ("service", "service", "", ' list="services"'),
            ("build", "build", "", ' list="builds"'),
            ("host", "host", "", ' list="hosts"'),
            ("label", "label", "", ' placeholder="unit=cron.service"'),
        )
    )
    kinds = _options({kind: _WHAT[kind] for kind in KINDS}, asked.kind)
    against = _options(AGAINST, asked.against)
    than = escape(asked.than)
    ranges = "".join(
        f'<a href="{escape(asked.address(path, since=length, until="now"))}">{length}</a>'
        for length in _RANGES
    )
    return f"""<form><label>what<select name="kind">{kinds}</select></label>{fields}
<button type="submit">Show</button><hr>
<label class="time">what changed since<select name="against">{against}</select></label>
<label>which build<input name="than" value="{than}" list="builds"></label></form>
<nav aria-label="range"><span class="soft">the last</span>{ranges}</nav>"""


def _options(values: Mapping[str, str], chosen: str) -> str:
    return "".join(
        f'<option value="{value}"{" selected" if value == chosen else ""}>{shown}</option>'
        for value, shown in values.items()
    )


@cache
def _script_hash() -> str:
    return b64encode(sha256(_read("page.js").encode()).digest()).decode()


@cache
def _read(name: str) -> str:
    return files("purebpf.services.fleet.web").joinpath(name).read_text(encoding="utf-8")
