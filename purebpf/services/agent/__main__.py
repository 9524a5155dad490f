"""`purebpf agent`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from purebpf.cli import command
from purebpf.services.agent.options import AgentOptions, build_parser, parse

if TYPE_CHECKING:
    from purebpf.services.agent.config import Config
    from purebpf.services.agent.session import Agent
    from purebpf.services.agent.signals import Signals

__all__ = ["build_parser", "main"]

NAME = "purebpf agent"
_MOST = 1 << 20


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: AgentOptions) -> int:
    for is_wanted, name in (
        (options.example, "example.toml"),
        (options.systemd, "purebpf-agent.service"),
        (options.daemonset, "daemonset.yaml"),
    ):
        if is_wanted:
            return _print(_shipped(name))
    config = _read(options.config)
    if options.check:
        from purebpf.services.agent.describe import describe

        return _print(describe(config))
    return _measure(options, config)


def _measure(options: AgentOptions, config: Config) -> int:
    """Run agents, one after the other, until a signal ends the last one."""
    from purebpf.measure.limits import raise_open_files
    from purebpf.measure.run import collecting
    from purebpf.services.agent.signals import Signals

    raise_open_files()
    with Signals() as signals, collecting():
        current: Config | None = config
        while current is not None:
            current = _run_agent(options, current, signals)
    return 0


def _run_agent(options: AgentOptions, config: Config, signals: Signals) -> Config | None:
    """Run one; the configuration that another one is to run with, or None."""
    import signal

    from purebpf.cli.countdown import counting_down
    from purebpf.services.agent.notify import notify
    from purebpf.services.agent.session import Agent

    window_s = config.agent.window_s if options.once else None
    with Agent(config, command.say, is_once=options.once) as agent, counting_down(window_s):
        notify("READY=1")
        while True:
            is_signal = agent.wait(signals)
            arrived = signals.take() if is_signal else set()
            if arrived & {signal.SIGINT, signal.SIGTERM} or (options.once and not is_signal):
                notify("STOPPING=1")
                agent.stop()
                _say_end(agent, options)
                return None
            if signal.SIGHUP in arrived:
                again = _read_again(options.config)
                if again is not None:
                    agent.stop()
                    command.say(f"{options.config} is read again")
                    return again
            if signal.SIGUSR1 in arrived:
                agent.burst()
            if not is_signal:
                agent.end_window()
                if options.verbose:
                    command.say(agent.describe_window())


def _say_end(agent: Agent, options: AgentOptions) -> None:
    from purebpf.cli.loss import explain_profile

    command.say(agent.describe_window())
    if agent.last_profile is not None:
        explain_profile(agent.last_profile, verbose=options.verbose)


def _read(path: str) -> Config:
    from purebpf.services.agent.config import ConfigError, parse_config

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_MOST)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        advice = f"Use --config FILE; `{NAME} --example` prints one to begin with"
        raise ConfigError(f"reading the configuration {path}: {why}. {advice}") from error
    return parse_config(text, path)


def _read_again(path: str) -> Config | None:
    """The configuration of now; None, and a line that says why, where it is broken."""
    from purebpf.errors import PurebpfError

    try:
        return _read(path)
    except PurebpfError as error:
        command.note(f"{error}. The agent goes on as before")
        return None


def _shipped(name: str) -> str:
    from importlib.resources import files

    text = files("purebpf.services.agent").joinpath(name).read_text(encoding="utf-8")
    return text.replace("@PUREBPF@", f"{sys.executable} -m purebpf")


def _print(text: str) -> int:
    from purebpf.cli.output import Output

    with Output() as output:
        output.write([text])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
