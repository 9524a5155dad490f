"""A table on a screen that keys change: its choice, order and hidden rows. Pure.

state = press(state, key, choices, rows, page)      a key makes another state
lines = draw(state, sheet, width, height)           a state and rows make the screen
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from purebpf.results.model.spelling import printable
from purebpf.results.model.units import count_in_unit
from purebpf.results.model.width import cut, display_width, pad
from purebpf.tuples import NamedTuple

__all__ = [
    "Choices",
    "Column",
    "Line",
    "Sheet",
    "SheetRow",
    "State",
    "Step",
    "arrange",
    "draw",
    "page_rows",
    "press",
]

Line = Sequence[tuple[str, str]]
"""(text, style), from left to right; styles are those of `purebpf.cli.terminal`."""

NAME = "name"
_HEAD = 3
_FOOT = 1
_WARM, _HOT = 0.02, 0.1
_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*#@"
_HEATS = 5
_HELP = (
    ("q", "quit: the table of the whole run follows"),
    ("up, down, j, k", "choose a row; page up, page down, home, end"),
    ("enter, right", "look into the chosen row"),
    ("esc, left, backspace", "back; also shows all rows again"),
    ("s, S", "sort by the next column, the one before"),
    ("r", "reverse the order"),
    ("/", "only names with a text: type it, then enter"),
    ("space, p", "pause: keep what is shown; measuring goes on"),
    ("b, B", "count by the next kind, the one before"),
    ("h, ?", "this help, and back"),
    ("Ctrl-L", "draw the screen again"),
)
_OTHER_TABS = ("1, 2, ..., tab", "another screen; the one before measures no longer")


class Step(NamedTuple):
    """A row that the user opened: its kind, its name, and its place on the screen."""

    kind: str
    key: Hashable
    label: str
    at: int = 0


class State(NamedTuple):
    """The user's choices.

    Attributes:
        by: the kind of rows.
        sort: the name of a column, or "name".
        typed: the text of a filter that is being typed; None: there is none.
        pattern: a text in the names of the rows to show; "" is all of them.
        at: the number of the chosen row.
        path: the rows that were looked into, the first one first.
    """

    by: str
    sort: str
    is_reversed: bool = False
    pattern: str = ""
    typed: str | None = None
    is_paused: bool = False
    shows_help: bool = False
    at: int = 0
    path: tuple[Step, ...] = ()
    is_over: bool = False


class Choices(NamedTuple):
    """The alternatives of a screen.

    `deeper` has the kind of rows after a row of each kind was opened.
    """

    bys: tuple[str, ...]
    sorts: tuple[str, ...]
    deeper: Mapping[str, str]


class Column(NamedTuple):
    """The head of a column of numbers, and its width."""

    name: str
    width: int


class SheetRow(NamedTuple):
    """A row: its name, a number and a text for each column, and its share of all (0 to 1)."""

    key: Hashable
    name: str
    values: tuple[float, ...]
    cells: tuple[str, ...]
    share: float = 0.0


class Sheet(NamedTuple):
    """The content of a screen. `heat` has one number for each interval of the last minute.

    `tabs` are the screens that there are, `tab` is this one; keys choose another by its number.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[SheetRow]
    heat: Sequence[float] = ()
    heat_unit: str = ""
    is_ascii: bool = False
    tabs: tuple[str, ...] = ()
    tab: str = ""


def arrange(state: State, columns: Sequence[Column], rows: Sequence[SheetRow]) -> list[SheetRow]:
    """The rows that match, sorted: numbers from the greatest, names from the first letter."""
    pattern = (state.pattern if state.typed is None else state.typed).lower()
    matching = [row for row in rows if pattern in row.name.lower()]
    names = [column.name for column in columns]
    if state.sort in names:
        at = names.index(state.sort)
        matching.sort(key=lambda row: row.name)
        matching.sort(key=lambda row: row.values[at], reverse=not state.is_reversed)
    else:
        matching.sort(key=lambda row: row.name, reverse=state.is_reversed)
    return matching


def press(state: State, key: str, choices: Choices, rows: Sequence[SheetRow], page: int) -> State:
    """Return the state after a key; `rows` are the visible rows, `page` is how many fit."""
    if state.typed is not None:
        return _type(state, state.typed, key)
    if state.shows_help and key != "q":
        return state._replace(shows_help=False)
    if key in _MOVES:
        return state._replace(at=_clamp(_move(state.at, key, page, len(rows)), len(rows)))
    if key in ("enter", "right"):
        return _enter(state, choices, rows)
    if key in ("escape", "left", "backspace"):
        return _back(state)
    if key in ("b", "B", "s", "S"):
        return _switch(state, key, choices)
    return _toggle(state, key)


_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": 0, "page down": 0, "home": 0, "end": 0}
"""How many rows further a key goes; those with 0 depend on the screen."""


def _move(at: int, key: str, page: int, length: int) -> int:
    if key == "home":
        return 0
    if key == "end":
        return length
    if key.startswith("page"):
        return at + (page if key == "page down" else -page)
    return at + _MOVES[key]


def _toggle(state: State, key: str) -> State:
    if key == "q":
        return state._replace(is_over=True)
    if key in ("h", "?"):
        return state._replace(shows_help=True)
    if key == "r":
        return state._replace(is_reversed=not state.is_reversed, at=0)
    if key == "/":
        return state._replace(typed="")
    if key in (" ", "p"):
        return state._replace(is_paused=not state.is_paused)
    return state


def _type(state: State, typed: str, key: str) -> State:
    """A key while a filter is being typed."""
    if key == "enter":
        return state._replace(pattern=typed, typed=None, at=0)
    if key == "escape":
        return state._replace(typed=None)
    if key == "backspace":
        return state._replace(typed=typed[:-1], at=0)
    if key == "clear":
        return state._replace(typed="", at=0)
    return state._replace(typed=typed + key, at=0) if len(key) == 1 else state


def _enter(state: State, choices: Choices, rows: Sequence[SheetRow]) -> State:
    if not rows or state.by not in choices.deeper:
        return state
    row = rows[_clamp(state.at, len(rows))]
    step = Step(state.by, row.key, row.name, state.at)
    by = choices.deeper[state.by]
    return state._replace(by=by, path=(*state.path, step), at=0, pattern="")


def _back(state: State) -> State:
    if state.pattern or not state.path:
        return state._replace(pattern="", at=0)
    *path, step = state.path
    return state._replace(by=step.kind, path=tuple(path), at=step.at)


def _switch(state: State, key: str, choices: Choices) -> State:
    by_kind = key in "bB"
    all_of_them = choices.bys if by_kind else (*choices.sorts, NAME)
    now = state.path[0].kind if by_kind and state.path else state.by if by_kind else state.sort
    at = all_of_them.index(now) if now in all_of_them else -1
    chosen = all_of_them[(at + (1 if key in "bs" else -1)) % len(all_of_them)]
    if by_kind:
        return state._replace(by=chosen, path=(), pattern="", at=0)
    return state._replace(sort=chosen, is_reversed=False, at=0)


def _clamp(at: int, length: int) -> int:
    return max(0, min(at, length - 1))


def page_rows(height: int, *, has_tabs: bool = False) -> int:
    """Return how many rows fit on a screen."""
    return max(1, height - _HEAD - _FOOT - has_tabs)


def draw(state: State, sheet: Sheet, width: int, height: int) -> list[Line]:
    """The screen, at most `height` lines of at most `width` columns. `sheet.rows` are arranged."""
    lines: list[Line] = [_tabs(sheet, width)] if sheet.tabs else []
    lines += [_title(state, sheet, width), _heat(sheet, width)]
    if state.shows_help:
        lines += [[("", "")], *_help(width, has_tabs=bool(sheet.tabs))]
    else:
        lines += [_columns(state, sheet.columns, width)]
        lines += _rows(state, sheet, width, page_rows(height, has_tabs=bool(sheet.tabs)))
    lines = lines[: max(height - _FOOT, 1)]
    lines += [[("", "")]] * (height - _FOOT - len(lines))
    return [*lines, _foot(state, width)][:height]


def _tabs(sheet: Sheet, width: int) -> Line:
    cells: list[tuple[str, str]] = []
    for number, tab in enumerate(sheet.tabs, 1):
        cells += [(f"{number} {tab}", "selected" if tab == sheet.tab else "dim"), ("  ", "")]
    return _fit(cells, width)


def _title(state: State, sheet: Sheet, width: int) -> Line:
    words = [sheet.title, *(f"{step.kind} {step.label}" for step in state.path)]
    text = " > ".join(map(printable, words))
    if state.pattern:
        text = f"{text}  /{printable(state.pattern)}"
    if state.is_paused:
        text = f"PAUSED  {text}"
    return [(cut(text, width), "bold")]


def _heat(sheet: Sheet, width: int) -> Line:
    """Return a character for each interval: the higher, the more, in a colour to match."""
    highest = max(sheet.heat, default=0.0)
    most = count_in_unit(round(highest), 5) if highest >= 100 else f"{highest:.2f}"
    label = f"  last minute, up to {most} {sheet.heat_unit}"
    room = width - display_width(label)
    if not highest or room < 1:
        return [("", "")]
    blocks = _ASCII if sheet.is_ascii else _BLOCKS
    cells: list[tuple[str, str]] = []
    for value in sheet.heat[-room:]:
        part = value / highest
        block = blocks[round(part * (len(blocks) - 1))]
        cells.append((block, f"heat{max(1, round(part * _HEATS))}"))
    return [*cells, (label, "dim")]


def _columns(state: State, columns: Sequence[Column], width: int) -> Line:
    cells: list[tuple[str, str]] = []
    for column in columns:
        style = "selected" if column.name == state.sort else "bold"
        gap = column.width - len(column.name)
        cells += [(" " * gap, ""), (column.name, style), (" ", "")]
    left = width - sum(column.width + 1 for column in columns) - 1
    name = cut("caller" if _shows_callers(state) else state.by, max(left, 0))
    cells += [(" ", ""), (name, "selected" if state.sort == NAME else "bold")]
    return _fit(cells, width)


def _shows_callers(state: State) -> bool:
    return bool(state.path) and state.path[-1].kind == state.by


def _rows(state: State, sheet: Sheet, width: int, room: int) -> list[Line]:
    rows = sheet.rows
    if not rows:
        return [[(cut("  nothing", width), "dim")]]
    at = _clamp(state.at, len(rows))
    first = max(0, min(at - room // 2, len(rows) - room))
    lines: list[Line] = []
    for number in range(first, min(first + room, len(rows))):
        row = rows[number]
        cells = [
            f"{cell:>{column.width}} "
            for cell, column in zip(row.cells, sheet.columns, strict=True)
        ]
        text = pad("".join(cells) + " " + printable(row.name), width)
        lines.append([(text, "selected" if number == at else _style(row.share))])
    return lines


def _style(share: float) -> str:
    if share >= _HOT:
        return "hot"
    return "warm" if share >= _WARM else ""


def _help(width: int, *, has_tabs: bool) -> list[Line]:
    keys = (*_HELP[:1], _OTHER_TABS, *_HELP[1:]) if has_tabs else _HELP
    return [[(cut(f"  {key:<22}{what}", width), "")] for key, what in keys]


def _foot(state: State, width: int) -> Line:
    if state.typed is not None:
        return [(cut(f"/{printable(state.typed)}_   enter: keep, esc: drop", width), "bold")]
    if state.shows_help:
        return [(cut("any key: back", width), "dim")]
    order = "r reversed" if state.is_reversed else "r reverse"
    keys = f"q quit  h help  s sort  {order}  / filter  p pause  b by  enter in  esc out"
    return [(cut(keys, width), "dim")]


def _fit(cells: Sequence[tuple[str, str]], width: int) -> Line:
    """As many of the cells as there is room for."""
    kept = []
    for text, style in cells:
        shown = cut(text, width) if display_width(text) > width else text
        width -= display_width(shown)
        kept.append((shown, style))
    return kept
