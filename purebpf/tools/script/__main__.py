"""`purebpf script`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.tools.script.imitation import FOLLOWED, is_bpftrace, take_name
from purebpf.tools.script.options import build_parser, parse
from purebpf.tools.script.request import ScriptOptions

if TYPE_CHECKING:
    from purebpf.measure.child import Child
    from purebpf.measure.stop import Stop
    from purebpf.observe.script.session import ScriptSession
    from purebpf.script.compilation import Compilation
    from purebpf.script.script_error import ScriptError
    from purebpf.tools.script.output import ScriptOutput

__all__ = ["build_parser", "main"]

NAME = "purebpf script"
_NOTIFY = "__BPFTRACE_NOTIFY_PROBES_ATTACHED"
"""Programs that start bpftrace set this variable to be told when all probes are attached."""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    if not is_bpftrace():
        return command.run(NAME, lambda: _run(parse(argv)))
    take_name()
    return command.run("bpftrace", lambda: _run(parse(argv, as_bpftrace=True)))


def run_text(name: str, text: str, argv: Sequence[str]) -> int:
    """Run the script of a built file with options of the command; return its exit status."""
    return command.run(name, lambda: _run(parse(["-e", text, *argv])._replace(path=name)))


def _build(options: ScriptOptions, text: str, name: str) -> int:
    """Write a script and the modules that it needs into a file."""
    from purebpf.files.binary_file import DataFile
    from purebpf.script.parser import parse as parse_script
    from purebpf.script.script_error import ScriptError
    from purebpf.tools.script.building import build_archive

    assert options.build is not None
    try:
        parse_script(text)
    except ScriptError as error:
        command.say(error.render(text, name))
        return command.FAILED
    with DataFile(options.build) as file:
        file.write(build_archive(text, name))
        os.fchmod(file.fileno(), 0o755)
        file.commit()
    return 0


def _run(options: ScriptOptions) -> int:
    from purebpf.script.script_error import ScriptError
    from purebpf.tools.script.session import compile_request, opened
    from purebpf.tools.script.source import MissingScriptError, read_script

    if options.shows_info:
        return _show_info()
    if options.shows_version:
        return _show_version(options)
    if options.lists:
        return _list(options)
    try:
        text, name = read_script(options)
    except MissingScriptError as error:
        command.say(f"ERROR: {error}")
        return command.FAILED
    if options.build is not None:
        return _build(options, text, name)
    with opened(options) as (stop, child, followed):
        try:
            compilation = compile_request(options, text, name, child.pid if child else 0)
        except ScriptError as error:
            _say(error, text, name, "ERROR")
            return command.FAILED
        if not options.omits_warnings:
            for warning in compilation.warnings:
                _say(warning, text, name, "WARNING")
        try:
            return _trace(options, compilation, stop, child, followed)
        except ScriptError as error:
            _say(error, text, name, "ERROR")
            return command.FAILED


def _say(error: ScriptError, text: str, name: str, word: str) -> None:
    """Print an error of a script; its hint names options of this command."""
    from purebpf.cli.library_advice import with_options

    error.hint = with_options(error.hint, "purebpf script")
    command.say(error.render(text, name, word))


def _list(options: ScriptOptions) -> int:
    from purebpf.cli.output import Output
    from purebpf.tools.script.listing import list_requested

    with Output(None) as output:
        output.write(list_requested(options))
    return 0


def _show_version(options: ScriptOptions) -> int:
    from purebpf import __version__
    from purebpf.cli.output import Output

    name = (
        f"bpftrace v{FOLLOWED} (purebpf {__version__})"
        if options.is_bpftrace
        else (f"purebpf {__version__}, as bpftrace {FOLLOWED}")
    )
    with Output(None) as output:
        output.write([f"{name}\n"])
    return 0


def _show_info() -> int:
    from purebpf.cli.output import Output
    from purebpf.tools.script.info import describe_features

    with Output(None) as output:
        output.write([describe_features()])
    return 0


def _measure(options: ScriptOptions, session: ScriptSession, output: ScriptOutput) -> int:
    """Run the bench blocks between the begin and the end blocks; return the exit status."""
    from purebpf.tools.script.benchmarks import benchmark_json, benchmark_table

    session.begin()
    session.drain()
    benchmarks = list(session.benchmarks())
    for benchmark in benchmarks:
        if benchmark.mean_ns is None:
            command.say(f"ERROR: Benchmark '{benchmark.name}' failed.")
        elif options.is_json:
            output.write(benchmark_json(benchmark))
    if benchmarks and not options.is_json:
        output.write(benchmark_table(benchmarks))
    session.finish(prints_maps=False)
    return command.FAILED if any(item.mean_ns is None for item in benchmarks) else session.status


def _trace(
    options: ScriptOptions, compilation: Compilation, stop: Stop, child: Child | None, followed: int
) -> int:
    from purebpf.measure.targets import open_cgroup
    from purebpf.observe.script.session import ScriptSession
    from purebpf.tools.script.output import ScriptOutput
    from purebpf.tools.script.session import wait
    from purebpf.tools.script.stacks import link_stacks

    pids = {number for number in (options.pid, child.pid if child else 0) if number}
    with (
        nullcontext() if options.cgroup is None else open_cgroup(options.cgroup) as cgroup,
        ScriptOutput(options.output, options.buffering) as output,
        ScriptSession(
            compilation,
            output.write,
            command.say,
            is_json=options.is_json,
            omits_warnings=options.omits_warnings,
            link_stacks=partial(link_stacks, pids=pids),
            cgroup_fd=cgroup.fileno() if cgroup is not None else None,
        ) as session,
    ):
        if options.mode:
            return _measure(options, session, output)
        if all(unit.point.kind == "bench" for unit in compilation.units):
            command.say("ERROR: No probes attached; use --bench to run benchmark probes.")
            return command.FAILED
        count = session.attach()
        if not options.is_quiet:
            if options.is_json:
                data = f'"count": {count}, "data": {{"probes": {count}}}'
                output.write(f'{{"type": "attached_probes", {data}}}\n')
            else:
                command.say(f"Attached {count} probe{'s' if count != 1 else ''}")
        if options.is_verbose:
            for line in session.describe_programs():
                command.say(line)
        if _NOTIFY in os.environ:
            output.write(f"{_NOTIFY}\n")
            output.flush()
        if options.is_dry:
            return 0
        if child is not None:
            child.start()
        wait(session, stop, followed, output.flush, options.duration_s)
        session.finish()
        output.flush()
        for sentence in session.losses():
            command.say(sentence)
        return session.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
