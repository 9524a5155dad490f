"""`Printer`: does the work of user space for each event of a script."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from purebpf.observe.script.stored_maps import StoredMaps
from purebpf.script.actions import Action
from purebpf.script.format_string import split_format
from purebpf.script.output.compiled_formats import Formatter, compile_format
from purebpf.script.output.decode import Decoder
from purebpf.script.output.map_text import dump_json, json_of, map_json, map_text, value_text
from purebpf.script.output.text import format_values, show

__all__ = ["Printer"]

_BATCH = 1024
"""The events that are formatted and written at once."""
_action_number = itemgetter(slice(8))
_FORMATTED = frozenset({"printf", "errorf", "warnf", "cat", "system"})


class Printer:
    """Prints the events and the maps of a script.

    Args:
        actions: the actions by number.
        maps: the maps.
        decoder: decodes the values of events.
        write: takes the text.
        is_json: print lines of JSON.
        warn: takes lines for standard error.
        place: adds the place in the script to a message of errorf() or warnf().
        most_bytes: the limit of cat().
        omits_warnings: print nothing for warnf().
    """

    def __init__(
        self,
        actions: Sequence[Action],
        maps: StoredMaps,
        decoder: Decoder,
        write: Callable[[str], object],
        *,
        is_json: bool,
        warn: Callable[[str], object],
        place: Callable[[Action, str], str],
        most_bytes: int,
        omits_warnings: bool = False,
    ) -> None:
        self._omits_warnings = omits_warnings
        self._warn, self._place, self._most_bytes = warn, place, most_bytes
        self._actions, self._maps, self._decoder = actions, maps, decoder
        self._write, self._is_json = write, is_json
        self._formats = [
            split_format(action.text) if action.kind in _FORMATTED else ([], "")
            for action in actions
        ]
        self._formatters = self._compile_formats()

    def _compile_formats(self) -> Mapping[bytes, Formatter]:
        """Return the formatters of the printf() that have one, by the bytes of their number."""
        if self._is_json:
            return {}
        formatters = {
            number.to_bytes(8, "little"): compile_format(action.text, action.types, self._decoder)
            for number, action in enumerate(self._actions)
            if action.kind == "printf"
        }
        return {number: made for number, made in formatters.items() if made is not None}

    def take_all(self, records: Iterable[bytes]) -> Iterable[bytes]:
        """Print the records of printf() that come in runs, and yield the others to be taken."""
        for number, run in groupby(records, _action_number):
            formatter = self._formatters.get(number)
            if formatter is None:
                yield from run
            else:
                while batch := list(islice(run, _BATCH)):
                    self._write("".join(formatter(batch)))

    def take(self, data: bytes) -> int | None:
        """Do the work of one event; return the status of exit(), None for other events."""
        number = int.from_bytes(data[:8], "little")
        action = self._actions[number]
        match action.kind:
            case kind if kind in _FORMATTED:
                values = self._decoder.values(action.types, data[8:])
                self.printed(action, format_values(*self._formats[number], values), values)
            case "print map":
                self.print_map(action.text, *action.numbers)
            case "print key":
                self._print_key(action, data)
            case "print value":
                self.print_value(self._decoder.value(action.types[0], data, 8))
            case "clear":
                self._maps.clear(action.text)
            case "zero":
                self._maps.zero(action.text)
            case "time":
                self._say("time", time.strftime(action.text))
            case "join":
                words = self._decoder.value(action.types[0], data, 8)
                text = action.text.join(word for word in words if word)
                self._say("join", text if self._is_json else f"{text}\n")
            case "exit":
                return data[8]
        return None

    @staticmethod
    def text_of(value: object) -> str:
        """Return the line of a value."""
        return f"{show(value)}\n"

    def printed(self, action: Action, text: str, values: list[Any]) -> None:
        """Do the work of a function that formats its arguments."""
        del values
        match action.kind:
            case "cat":
                try:
                    with open(text, "rb") as file:
                        data = file.read(self._most_bytes)
                except OSError as error:
                    message = f"ERROR: failed to open file '{text}' ({error.strerror})"
                    self._warn(message)
                    return
                self._say("cat", data.decode("utf-8", "surrogateescape"))
            case "system":
                import subprocess  # only for scripts with --unsafe

                done = subprocess.run(text, shell=True, capture_output=True, check=False)  # noqa: S602
                self._say("syscall", done.stdout.decode("utf-8", "surrogateescape"))
            case "warnf" if self._omits_warnings:
                pass
            case "errorf" | "warnf":
                self._warn(self._place(action, text))
            case _:
                self._say("printf", text)

    def _say(self, kind: str, text: str) -> None:
        self._write(dump_json({"type": kind, "data": text}) + "\n" if self._is_json else text)

    def print_value(self, value: object) -> None:
        """Print a value."""
        if self._is_json:
            self._write(dump_json({"type": "value", "data": json_of(value)}) + "\n")
        else:
            self._write(self.text_of(value))

    def print_map(self, name: str, top: int = 0, divisor: int = 0) -> None:
        """Print the last `top` rows of a map, values divided by `divisor`."""
        self.print_rows(name, self._maps.rows(name), top, divisor)

    def print_rows(
        self, name: str, rows: list[tuple[Any, Any]], top: int = 0, divisor: int = 0
    ) -> None:
        """Print a map whose keys and values have been read."""
        info = self._maps.infos[name]
        if self._is_json:
            self._write(map_json(info, rows[-top:] if top else rows, divisor))
            return
        if not rows and info.is_scalar and not info.has_buckets:
            rows = self._maps.empty_rows(name)
        self._write(map_text(info, rows, top, divisor))

    def _print_key(self, action: Action, data: bytes) -> None:
        info = self._maps.infos[action.text]
        wanted = self._decoder.value(action.types[0], data, 8)
        for key, value in self._maps.rows(action.text):
            if key == wanted:
                text = value_text(info, value)
                self._say("value", text if info.has_buckets else f"{text}\n")

    def print_all(self) -> None:
        """Print two empty lines, and all maps that have values."""
        if not self._is_json:
            self._write("\n\n")
        for name in sorted(self._maps.infos):
            rows = self._maps.rows(name)
            if rows or (self._is_json and self._maps.is_zeroed(name)):
                self.print_rows(name, rows)
