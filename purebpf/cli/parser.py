"""The command line that the commands have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from purebpf.cli import command
from purebpf.cli.arguments import (
    address,
    cpu_list,
    id_list,
    output,
    positive_int,
    seconds,
    user_id,
)

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = [
    "Parser",
    "add_async",
    "add_debuginfod",
    "add_delimited",
    "add_duration",
    "add_duration_option",
    "add_frequency",
    "add_names",
    "add_old_name",
    "add_output",
    "add_scope",
    "add_serve",
    "add_stack_kinds",
    "add_storage",
    "add_strict",
    "add_targets",
    "add_thread_kinds",
    "new",
    "parse",
    "pick",
    "take_defaults",
]


_ANYWHERE = ("127.0.0.1", 0)
_UNKNOWN = "unrecognized arguments: "
"""Begins argparse's message."""
_EXAMPLES = "examples:\n"
_FIRST = 3
"""Examples above the options."""

Request = TypeVar("Request")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as it is written, 80 columns wide.

    argparse makes a formatter for each option. Without a width, that imports shutil with all
    its compressors (2 ms) to ask the terminal for one.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=78)


class Parser(argparse.ArgumentParser):
    """A parser that ends as the commands do, whatever the standard streams are.

    Argparse's own leaves text in the buffer of a stream that is full, and prints a mistake on
    standard output when standard error is closed.
    """

    def error(self, message: str) -> NoReturn:
        """Print the error, and end with status 2."""
        _, unknown, words = message.partition(_UNKNOWN)
        if unknown:
            message += self._similar_options(words.split())
        command.say(f"{self.format_usage()}{self.prog}: error: {message}")
        sys.exit(2)

    def parse_known_args(  # type: ignore[override] # argparse has overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse's own, which all ways of parsing call, but without unknown options."""
        if args is not None:
            self._refuse_unknown_options(_split(args)[0])
        return super().parse_known_args(args, namespace)

    def _refuse_unknown_options(self, arguments: Sequence[str]) -> None:
        """End with the name of an unknown option, before the value behind it is taken for an
        argument.
        """
        words = [word for word in arguments if word[:2] == "--" != word and " " not in word]
        options = self._option_string_actions
        if unknown := [word for word in words if word.partition("=")[0] not in options]:
            self.error(_UNKNOWN + " ".join(unknown))

    def _similar_options(self, words: Sequence[str]) -> str:
        """Return ` (similar: --tree)`, or "" if no option is similar to one of `words`."""
        from purebpf.similar import suggest

        options = [flag for flag in self._option_string_actions if flag.startswith("--")]
        hints = (suggest(word.partition("=")[0], options) for word in words if word[:2] == "--")
        hint = next(filter(None, hints), "")
        return f" ({hint})" if hint else ""

    def format_help(self) -> str:
        """Return the help; its first examples stand above the options."""
        usual = self.description, self.epilog
        self.description, self.epilog = _move_examples(self.description or "", self.epilog or "")
        try:
            return super().format_help()
        finally:
            self.description, self.epilog = usual

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """The help; where standard output is closed, on standard error."""
        if file is not None or sys.stdout is None:
            super().print_help(file)
        elif status := command.run(self.prog, self._show_help):
            sys.exit(status)

    def _show_help(self) -> int:
        from purebpf.cli.output import Output

        with Output() as output:
            output.write([self.format_help()])
        return 0


def _move_examples(description: str, epilog: str) -> tuple[str, str]:
    """Move the first examples of `epilog` behind the description; return both."""
    before, found, after = epilog.partition(_EXAMPLES)
    if before or not found:
        return description, epilog
    examples, _, rest = after.partition("\n\n")
    lines = examples.splitlines()
    description = "\n".join([f"{description.rstrip()}\n", _EXAMPLES.strip(), *lines[:_FIRST]])
    more = "\n".join([f"more {_EXAMPLES.strip()}", *lines[_FIRST:]]) if lines[_FIRST:] else ""
    return description, "\n\n".join(filter(None, (more, rest)))


def new(
    name: str, description: str, epilog: str, *, usage: str = "[duration] [-- command ...]"
) -> argparse.ArgumentParser:
    """A parser for `purebpf NAME [options] USAGE`; options cannot be abbreviated."""
    return Parser(
        prog=name,
        usage=f"{name} [options] {usage}".rstrip(),
        description=description,
        epilog=epilog,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )


def parse(
    parser: argparse.ArgumentParser,
    argv: Sequence[str],
    targets: Mapping[str, str],
    *,
    intermixed: bool = False,
    awaits_name: bool = True,
) -> argparse.Namespace:
    """The options found, and as `command` the words behind `--`; exits with 2 if they are wrong.

    `targets` are the options that do not go with a command, with the attribute of each.
    `intermixed`: a list of words may have options between them.
    `awaits_name`: --comm may name processes that start later; a note says that there are none yet.
    """
    arguments, command = _split(argv)
    parsed = (parser.parse_intermixed_args if intermixed else parser.parse_args)(arguments)
    parsed.command = tuple(command or ())
    if command is not None:
        if not command:
            parser.error("a command is missing after --")
        if any(getattr(parsed, name) for name in targets.values()):
            *others, last = targets
            parser.error(
                f"{', '.join(others)} and {last} exclude a command: the command is the target"
            )
        if targets and getattr(parsed, "comm", None) is not None:
            parser.error("--comm excludes a command: the command is the target")
    if (duration_s := vars(parsed).pop("duration", None)) is not None:
        if parsed.duration_s != parser.get_default("duration_s"):
            parser.error("argument --duration: the duration is given twice")
        parsed.duration_s = duration_s
    if getattr(parsed, "tree", False) and not (parsed.pids or parsed.comm):
        parser.error("--tree is about children of processes: add -p or --comm")
    named = vars(parsed)
    texts = named.get("container"), named.get("comm")
    if texts != (None, None) or len(named.get("pids") or ()) > 1:
        from purebpf.cli.named_tasks import resolve_names

        resolve_names(parsed, awaits_name=awaits_name)
    named.pop("container", None)
    return parsed


def pick(kind: type[Request], parsed: argparse.Namespace, *, is_partial: bool = False) -> Request:
    """Make a named tuple of those options that have the names of its fields.

    Args:
        kind: the tuple.
        parsed: the options.
        is_partial: fields without an option keep their defaults.

    Raises:
        TypeError: a field has no option; the names of both differ.
    """
    options, fields = vars(parsed), vars(kind)["_fields"]
    if missing := [name for name in fields if name not in options and not is_partial]:
        raise TypeError(f"{kind.__name__} has fields without an option: {', '.join(missing)}")
    return kind(**{name: value for name, value in options.items() if name in fields})


def take_defaults(parser: argparse.ArgumentParser, *kinds: type[object]) -> None:
    """Give each option the default of the field that has its name: types declare defaults, once.

    Args:
        parser: the parser, with all its options. `%(default)s` in their helps is the new default.
        kinds: named tuples, with different fields.

    Raises:
        TypeError: an option of a field has a default of its own.
    """
    fields: dict[str, object] = {}
    for kind in kinds:
        fields |= vars(kind)["_field_defaults"]
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        if action.dest not in fields or action.default == []:
            continue
        if action.default is not None and not isinstance(action.default, bool):
            raise TypeError(f"{action.dest} has the default of its field: leave out default=")
        value = fields[action.dest]
        is_list = isinstance(action, argparse._AppendAction)  # noqa: SLF001
        action.default = [*value] if is_list and isinstance(value, tuple) else value


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """The options, and the command behind `--` if there is one."""
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def add_targets(
    group: argparse._ArgumentGroup,
    *,
    thread: tuple[str, ...] = (),
    threads: str | None = "these threads only",
    cpus: str | None = "these CPUs only",
    user: tuple[str, ...] = ("--uid",),
    users: str = "tasks that run as this user",
    container: str = "container",
) -> None:
    """Options `pids`, `tids`, `cpus` (empty: all), `tree`, `uid`, `cgroup`.

    `thread` are more letters of `-t`, `user` the spellings of `--uid`, `container` is the attribute
    of `--container`. The others are helps; without `threads` or `cpus` there is no such option.
    """
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        *("-p", "--pid"), dest="pids", metavar="PID", type=id_list,
        help="these processes, with all their threads: PID[,PID...]",
    )  # fmt: skip
    if threads is not None:
        either.add_argument(
            *(*thread, "-t", "--tid"), dest="tids", metavar="TID", type=id_list,
            help=f"{threads}: TID[,TID...]",
        )  # fmt: skip
    if cpus is not None:
        group.add_argument(
            *("-C", "--cpu"), dest="cpus", metavar="CPU", type=cpu_list,
            help=f"{cpus}: 0-3,8",
        )  # fmt: skip
    either.add_argument(
        *("--comm",), metavar="NAME",
        help="the processes with this name (/proc/PID/comm), for as long as they have it: those "
        "that exist, and those to come",
    )  # fmt: skip
    group.add_argument(
        "--tree", action="store_true",
        help="children of -p and --comm, too: those that exist, and those to come",
    )  # fmt: skip
    add_scope(group, users, user, container)


def add_scope(
    group: argparse._ActionsContainer,
    users: str,
    user: tuple[str, ...] = ("--uid",),
    container: str = "container",
) -> None:
    """Options `uid`, `cgroup` and the attribute `container`, as `add_targets` has them."""
    group.add_argument(*user, metavar="USER", type=user_id, help=f"{users}: name or UID")
    below = group.add_mutually_exclusive_group()
    below.add_argument(
        *("-G", "--cgroup"), metavar="PATH", help="tasks in this cgroup v2 directory and below it"
    )
    below.add_argument(
        *("--container",), dest=container, metavar="NAME",
        help="the same of a container or unit, by its name or ID",
    )  # fmt: skip


def add_program(group: argparse._ArgumentGroup) -> None:
    """Option `program`."""
    group.add_argument(
        *("--program",), metavar="FILE[:NAME]",
        help='a BPF object with your program, SEC("perf_event"), which sees each sample of the '
        "target and drops it by returning 0",
    )  # fmt: skip


def add_thread_kinds(group: argparse._ArgumentGroup) -> None:
    """Options `user_threads_only` and `kernel_threads_only`."""
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        *("-u", "--user-threads-only"), action="store_true",
        help="user threads only (no kernel threads)",
    )  # fmt: skip
    kind.add_argument(
        *("-k", "--kernel-threads-only"), action="store_true", help="kernel threads only"
    )


def add_stack_kinds(group: argparse._ArgumentGroup) -> None:
    """Options `user_stacks_only` and `kernel_stacks_only`."""
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(*("-U", "--user-stacks-only"), action="store_true", help="user stacks only")
    kind.add_argument(
        *("-K", "--kernel-stacks-only"), action="store_true", help="kernel stacks only"
    )


def add_call_graph(group: argparse._ArgumentGroup) -> None:
    """Option `call_graph`."""
    group.add_argument(
        "--call-graph", choices=("auto", "tables", "deep", "copy", "fp"),
        help="walk user stacks by unwind tables, 127 frames or with deep 1024, copy them, or "
        "follow frame pointers (default: tables, or fp where this kernel or CPU cannot)",
    )  # fmt: skip


def add_python(group: argparse._ArgumentGroup) -> None:
    """Options `python` and `native`."""
    group.add_argument(
        "--no-python", dest="python", action="store_false",
        help="do not read the frames of Python functions; docs/python.md",
    )  # fmt: skip
    group.add_argument(
        "--native", action="store_true",
        help="with Python functions, show the frames of the interpreter, too",
    )  # fmt: skip


def add_async(group: argparse._ArgumentGroup) -> None:
    """Option `async_tasks`."""
    group.add_argument(
        "--async", dest="async_tasks", action="store_true",
        help="add the asyncio tasks that await the running one (CPython 3.14)",
    )  # fmt: skip


def add_storage(group: argparse._ArgumentGroup, row: str) -> None:
    """Options `hash_storage_size`, of which `row` is one, and `stack_storage_size`."""
    group.add_argument(
        "--hash-storage-size", metavar="N", type=positive_int,
        help=f"maximum number of different {row} (default %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--stack-storage-size", metavar="N", type=positive_int,
        help="maximum number of different stacks (default %(default)s)",
    )  # fmt: skip


def add_delimited(group: argparse._ArgumentGroup) -> None:
    """Option `delimited`."""
    group.add_argument(
        *("-d", "--delimited"), action="store_true",
        help="put a delimiter between user and kernel frames",
    )  # fmt: skip


def add_serve(group: argparse._ArgumentGroup) -> None:
    """Option `serve`: where browsers that look on are listened for; None: nowhere."""
    group.add_argument(
        "--serve", metavar="ADDR:PORT", nargs="?", const=_ANYWHERE, type=address,
        help="serve a live flame graph to a browser (default: 127.0.0.1, a free port)",
    )  # fmt: skip


def add_duration(
    parser: argparse.ArgumentParser, verb: str, *, default: str = "until Ctrl-C"
) -> None:
    """The argument `duration_s`, how long to `verb`, and an option that `parse` copies to it."""
    parser.add_argument(
        *("duration_s",), metavar="duration", nargs="?", type=seconds,
        help=f"seconds to {verb}, or 500ms, 2m (default: {default})",
    )  # fmt: skip
    add_duration_option(parser, "the same, as an option")


def add_duration_option(parser: argparse.ArgumentParser, about: str) -> None:
    """The option that `parse` copies to `duration_s`."""
    parser.add_argument("--duration", metavar="TIME", type=seconds, help=about)


def add_frequency(group: argparse._ActionsContainer, about: str) -> None:
    """Option `frequency`; profilers before this one call it by both names."""
    group.add_argument(
        *("-F", "--frequency", "--freq"), dest="frequency", metavar="HZ", type=positive_int,
        help=about,
    )  # fmt: skip


class _OldName(argparse.Action):
    """An option that has another name now: it works, and says so."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        command.say(
            f"{parser.prog}: {option_string} is called {self.const} now; the old name goes away "
            "with the next minor version"
        )
        setattr(namespace, self.dest, values)


def add_old_name(
    group: argparse._ActionsContainer,
    old: str,
    new: str,
    *,
    dest: str,
    type: Callable[[str], object],  # noqa: A002 - as argparse calls it
) -> None:
    """The former name of an option with a value: it works for one minor version, and warns.

    Args:
        group: the place of the option itself.
        old: the former name, such as `--rows`. It is in no help.
        new: the present name.
        dest: the attribute of the option.
        type: the reader of its value.
    """
    group.add_argument(
        old, dest=dest, type=type, action=_OldName, const=new, help=argparse.SUPPRESS
    )


def add_format(
    group: argparse._ActionsContainer,
    formats: Sequence[str] = ("text", "json"),
    about: str = "default: text",
) -> None:
    """Option `format`, which --json also sets."""
    group.add_argument("--format", choices=formats, help=about)
    group.add_argument(
        *("--json",), dest="format", action="store_const", const="json",
        help="same as --format json",
    )  # fmt: skip


def add_output(group: argparse._ArgumentGroup) -> None:
    """Options `output` and `strict`."""
    group.add_argument(
        *("-o", "--output"), metavar="FILE", type=output,
        help="write to FILE when it is complete; -: standard output",
    )  # fmt: skip
    add_strict(group)


def add_strict(group: argparse._ArgumentGroup) -> None:
    """Options `strict` and `verbose`."""
    group.add_argument(
        "--strict", action="store_true", help="exit with status 3 if anything was lost"
    )
    group.add_argument(
        *("-v", "--verbose"), action="store_true", help="every counter at the end; whole names"
    )


def add_names(group: argparse._ArgumentGroup) -> None:
    """Options `lines` and `debuginfod`."""
    group.add_argument(
        "--lines", action="store_true", help="add file, line and inlined functions; docs/symbols.md"
    )
    add_debuginfod(group)


def add_debuginfod(group: argparse._ArgumentGroup) -> None:
    """Option `debuginfod`."""
    group.add_argument(
        "--debuginfod", action="store_true",
        help="download missing debug files from the servers in DEBUGINFOD_URLS",
    )  # fmt: skip
