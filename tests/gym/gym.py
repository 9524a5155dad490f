#!/usr/bin/env python3
"""The incident gym: does what a person types lead to the cause within its first ten lines?

    gym.py --purebpf /path/to/purebpf [--python VENV/bin/python] [--only a,b] [--out results.json]

For each scenario (a folder with `start` and `truth.json`), start it, run `purebpf triage 10`, the
other commands of truth.json, and the commands that triage recommends; see on which line of each
output the cause is named. docs/gym.md says how to add a scenario.

Counted lines are neither blank nor a header: a header has no digit but those of "p50". The command
behind "->" says nothing. Lines about processes that are not the scenario's are left out: other work
of this machine, purebpf, and the scenario's clients, which a real service has on other hosts. Only
standard output counts.

Verdicts: `ten`: named within ten counted lines, and no decoy above; `24`: within 24; `late`: after
those; `no`: nowhere; `fails`: an error and no output; of healthy services, `calm` or `alarm`.
`decoy`: a decoy stands above the name, or within ten lines where there is no name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent / "scenarios"
TICK = os.sysconf("SC_CLK_TCK")
LINES = (10, 24)
_HEADER = re.compile(r"\bp\d+\b|\[\d+\]")
_ARROW = re.compile(r"\s+->\s+(?:purebpf )?(\S.*)$")
_ONE = re.compile(r"(?:^|[\s,:])([^\s(),:][^(),]*?) \((\d+)\)")
_MANY = re.compile(r"(\S[^()]*?) \((\d+) PIDs\)")
_AIMED = re.compile(r"(^|\s)(-p|-t|-G|--pid|--tid|--comm|--cgroup|--container)\b|^dump\b")
_FINDING = re.compile(r" {0,7}[\d.]+ s/s  | {6}busy  ")
"""The first line of a finding of triage; the lines up to the next one belong to it."""
_BANNER = re.compile(r"^(Tracing|Sampling|Looking at|Measuring|Summarizing|Following)\b")


# ---- the machine


def stat_of(pid: int) -> tuple[str, int, float] | None:
    """Name, parent, and CPU seconds, with those of children that were waited for."""
    try:
        text = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, int(fields[1]), sum(map(int, fields[11:15])) / TICK


def process_of(tid: int) -> int:
    """Of a thread; itself when it is gone."""
    try:
        return int(
            re.search(
                r"^Tgid:\s+(\d+)",
                Path(f"/proc/{tid}/status").read_text(errors="replace"),
                re.MULTILINE,
            )[1]
        )
    except (OSError, TypeError):
        return tid


def tree(root: int) -> dict[int, tuple[str, float]]:
    """Descendants of root with itself: name and CPU seconds by PID."""
    stats = {int(e): s for e in os.listdir("/proc") if e.isdigit() and (s := stat_of(int(e)))}
    children: dict[int, list[int]] = {}
    for pid, (_, parent, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    found, queue = {}, [root]
    while queue:
        pid = queue.pop()
        if pid in stats:
            found[pid] = stats[pid][0], stats[pid][2]
            queue += children.get(pid, [])
    return found


def busy_s() -> float:
    """CPU seconds of the machine since its start."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / TICK


def wait_quiet(limit: float, patience_s: float) -> float:
    """Until others use less than so many CPUs, or patience is over. What they use."""
    until = time.monotonic() + patience_s
    while True:
        before = busy_s()
        time.sleep(1.5)
        used = (busy_s() - before) / 1.5
        if used < limit or time.monotonic() > until:
            return used
        time.sleep(1)


# ---- a scenario


class Running:
    """A scenario that lives."""

    def __init__(self, folder: Path, seconds: float, python: str) -> None:
        self.folder = folder
        self.pids: set[int] = set()
        self.names: set[str] = set()
        self._done = threading.Event()
        env = {**os.environ, "GYM_SECONDS": str(seconds)}
        if python:
            env["GYM_PYTHON"] = python
        self.process = subprocess.Popen(
            [str(folder / "start")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        assert self.process.stdout
        assert self.process.stderr
        line = self.process.stdout.readline()
        if not line.startswith("READY"):
            self.process.terminate()
            raise RuntimeError(f"not ready: {line!r} {self.process.stderr.read()[-800:]}")
        self.words = dict(word.split("=", 1) for word in line.split()[1:])
        self.clients = {int(v) for k, v in self.words.items() if k.startswith("load")}
        self.look()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def look(self) -> float:
        """Take in who belongs to it; its CPU seconds so far."""
        found = tree(self.process.pid)
        for pid, (name, _) in found.items():
            if pid not in self.clients and pid != self.process.pid:
                self.pids.add(pid)
                self.names.add(name)
        return sum(cpu for _, cpu in found.values())

    def _watch(self) -> None:
        while not self._done.wait(1.0):
            self.look()

    def end(self) -> list[str]:
        """End it. What is left of it, which should be nothing."""
        self._done.set()
        self._thread.join()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
        left = []
        for pid in self.pids | self.clients:
            stat = stat_of(pid)
            if stat and stat[0] in self.names:
                left.append(f"{stat[0]} ({pid})")
        return left


# ---- reading outputs


def is_foreign(line: str, running: Running, own: set[str]) -> bool:
    """Whether it is about a process that is not the scenario's."""
    match = _MANY.search(line)
    if match:
        name = match[1].split("  ")[-1].strip()
        return name not in running.names | own
    match = _ONE.search(_ARROW.sub("", line))
    if not match:
        return False
    name, pid = match[1].split("  ")[-1].strip(), process_of(int(match[2]))
    if pid in running.pids:
        return False
    if stat_of(pid) or pid in running.clients:
        return True
    return name not in running.names | own


def is_header(line: str) -> bool:
    text = _HEADER.sub("", _ARROW.sub("", line))
    return not any(c.isdigit() for c in text) or bool(_BANNER.match(line))


def counted(text: str, running: Running, own: set[str]) -> Iterator[tuple[int, str]]:
    """The lines that stay, each with how many were counted up to it, itself included."""
    number, is_strange = 0, False
    for line in text.splitlines():
        if not line.strip() or _FINDING.match(line):
            is_strange = bool(line.strip()) and is_foreign(line, running, own)
        if not line.strip() or is_strange or is_foreign(line, running, own):
            continue
        number += not is_header(line)
        yield max(number, 1), line


def paragraphs(lines: list[tuple[int, str]], text: str) -> list[list[tuple[int, str]]]:
    """The lines, cut where the output has blank ones."""
    blank_before, previous = set(), True
    for line in text.splitlines():
        if line.strip() and previous:
            blank_before.add(line)
        previous = not line.strip()
    parts: list[list[tuple[int, str]]] = []
    for number, line in lines:
        if not parts or line in blank_before:
            parts.append([])
        parts[-1].append((number, line))
    return parts


def place_of(part: list[tuple[int, str]], groups: list[list[re.Pattern[str]]]) -> int | None:
    """The counted line on which the last of the groups is met."""
    said = [(n, _ARROW.sub("", line)) for n, line in part]
    places = [
        next((n for n, line in said if any(one.search(line) for one in group)), None)
        for group in groups
    ]
    return None if None in places else max(place for place in places if place is not None)


def judge(command: str, text: str, lines: list[tuple[int, str]], truth: dict, fill) -> dict:
    """Find the line of an output that names the cause, and the decoys above it.

    All groups of needles are to be met in one paragraph, with "apart" in any; a group with
    "{target}" is met by a command that is aimed at a process. Commands that cannot show the cause,
    and may have its name by accident, are "not_by".
    """
    if truth.get("healthy"):
        return judge_healthy(command, lines, truth, fill)
    aimed = bool(_AIMED.search(command))
    needles = [group for group in truth["needles"] if not (aimed and "{target}" in group)]
    groups = [[re.compile(fill(one)) for one in group if one != "{target}"] for group in needles]
    decoys = [re.compile(fill(one)) for one in truth.get("decoys", ())]
    parts = [lines] if truth.get("apart") else paragraphs(lines, text)
    places = [place for part in parts if (place := place_of(part, groups)) is not None]
    is_blind = command.split(maxsplit=1)[0] in truth.get("not_by", ())
    place = min(places) if places and not is_blind else None
    decoy = next(((n, line) for n, line in lines if any(d.search(line) for d in decoys)), None)
    above = bool(decoy) and (decoy[0] < place if place is not None else decoy[0] <= LINES[0])
    named = (
        "no" if place is None
        else "ten" if place <= LINES[0]
        else "24" if place <= LINES[1]
        else "late"
    )  # fmt: skip
    return {
        "named": named,
        "line": place,
        "decoy": decoy[1].strip() if decoy and above else "",
        "good": named == "ten" and not above,
        "lines": lines[:400],
    }


def judge_healthy(command: str, lines: list[tuple[int, str]], truth: dict, fill) -> dict:
    """A service without a fault: the first ten lines of triage must have none of its "decoys".

    The lines about busy programs, below the findings, are no findings.
    """
    lines = list(_without_busy(lines))
    alarms = [re.compile(fill(one)) for one in truth["decoys"]]
    alarm = next(
        (line for n, line in lines if n <= LINES[0] and any(a.search(line) for a in alarms)), ""
    )
    alarm = alarm.strip() if command.startswith("triage") else ""
    return {
        "named": "alarm" if alarm else "calm",
        "line": None,
        "decoy": alarm,
        "good": not alarm,
        "lines": lines[:400],
    }


def _without_busy(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    is_busy = False
    for number, line in lines:
        if _FINDING.match(line) or not line.startswith(" "):
            is_busy = line.startswith("      busy  ")
        if not is_busy:
            yield number, line


def rescore(results: list[dict]) -> None:
    """Judge kept outputs anew, by the present truth.json."""
    for result in results:
        if "error" in result:
            continue
        truth = json.loads((HERE / result["scenario"] / "truth.json").read_text())
        result["cause"] = truth["cause"]

        def fill(text: str, words: dict = result["ready"]) -> str:
            return re.sub(r"\{(\w+)\}", lambda m: words.get(m[1], m[0]), text)

        runs = {run["command"]: run for run in result["runs"]}
        for command, run in runs.items():
            lines = [(n, line) for n, line in run["lines"]]
            run |= judge(command, run["stdout"], lines, truth, fill)
        summarize(result, runs, list(result["asked"]), list(result["advised"]))


def summarize(result: dict, runs: dict[str, dict], asked: list[str], advice: list[str]) -> None:
    triage = runs[asked[0]]
    naming = {c.split()[0] for c in asked[1:] if runs[c]["good"]}
    result |= {
        "asked": asked,
        "advised": advice,
        "triage": label(triage),
        "triage_good": triage["good"],
        "commands": {c: label(runs[c]) for c in asked[1:]},
        "commands_good": any(runs[c]["good"] for c in asked[1:]),
        "advice": {c: label(runs[c]) for c in advice},
        "advice_good": any(runs[c]["good"] for c in advice),
        "advises_a_command_that_names_it": bool(naming & {c.split()[0] for c in advice})
        or any(runs[c]["good"] for c in advice),
        "decoys": [c for c in dict.fromkeys(asked + advice) if runs[c]["decoy"]],
        "noise": max(r["noise_cpus"] for r in runs.values()),
    }


def label(run: dict) -> str:
    """In a word or two."""
    if run["status"] and not run["stdout"].strip():
        return "fails"
    return run["named"] + ("+decoy" if run["decoy"] else "")


# ---- running


class Gym:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def run(self, command: str, running: Running, keep: Path | None) -> dict:
        """One command of purebpf."""
        argv = [*shlex.split(self.options.purebpf), *shlex.split(command)]
        before_all, before_own, t0 = busy_s(), running.look(), time.monotonic()
        usage = os.times()
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, cwd="/", timeout=150, check=False
            )
            out, err, status = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            out = (late.stdout or b"").decode(errors="replace")
            err, status = "gym: it did not end", -1
        used = os.times()
        took = time.monotonic() - t0
        ours = (
            used.children_user + used.children_system - usage.children_user - usage.children_system
        )
        noise = (busy_s() - before_all - (running.look() - before_own) - ours) / took
        if keep:
            name = re.sub(r"\W+", "-", command).strip("-")
            (keep / f"{running.folder.name}.{name}.out").write_text(out)
            (keep / f"{running.folder.name}.{name}.err").write_text(err)
        return {
            "command": command,
            "status": status,
            "took_s": round(took, 1),
            "noise_cpus": round(noise, 2),
            "stdout": out,
            "stderr": err,
        }

    def recommended(self, text: str, running: Running, truth: dict) -> list[str]:
        """What triage points to, those about the scenario's processes first."""
        specific, general = [], []
        for _, line in counted(text, running, set(truth.get("comms", ()))):
            match = _ARROW.search(line)
            if not match:
                continue
            command = match[1].strip()
            about = bool(re.search(r"-p \d|--comm|--tree|-t \d|--cgroup|-G ", command))
            (specific if about else general).append(command)
        return list(dict.fromkeys(specific + general))[: self.options.follow]

    @staticmethod
    def bounded(command: str) -> str:
        """As triage says it, for five seconds."""
        if command.split(maxsplit=1)[0] in ("dump", "doctor", "report"):
            return command
        return f"{command} 5 1" if command.startswith("runqlat") else f"{command} 5"

    def scenario(self, folder: Path) -> dict:
        truth = json.loads((folder / "truth.json").read_text())
        o = self.options
        result: dict = {"scenario": folder.name, "cause": truth["cause"]}
        result["noise_before"] = round(wait_quiet(o.noise, o.patience), 2)
        began = time.monotonic()
        running = Running(folder, o.life, o.python)
        try:
            time.sleep(truth.get("settle", 2.5))

            def fill(text: str) -> str:
                words = {**running.words, "pids": "|".join(map(str, sorted(running.pids)))}
                return re.sub(r"\{(\w+)\}", lambda m: words.get(m[1], m[0]), text)

            runs: dict[str, dict] = {}

            def take(command: str) -> dict:
                if command not in runs:
                    runs[command] = self.run(command, running, o.keep)
                    text = runs[command]["stdout"]
                    lines = list(counted(text, running, set(truth.get("comms", ()))))
                    runs[command] |= judge(command, text, lines, truth, fill)
                return runs[command]

            asked = [fill(command) for command in truth["commands"]]
            asked[0] = f"triage {o.seconds}"
            take(asked[0])
            told = self.recommended(runs[asked[0]]["stdout"], running, truth)
            advice = [self.bounded(text) for text in told]
            for command in asked[1:]:
                take(command)
            for command in advice:
                take(command)
            result |= {"ready": running.words, "runs": list(runs.values())}
            summarize(result, runs, asked, advice)
        finally:
            left = running.end()
        result["left_behind"] = left
        result["took_s"] = round(time.monotonic() - began, 1)
        return result


def table(results: list[dict]) -> str:
    rows = [("scenario", "triage", "commands", "advice of triage", "leads", "noise")]
    for r in results:
        if "error" in r:
            rows.append((r["scenario"], "ERROR", r["error"][:60], "", "", ""))
            continue

        def short(commands: dict[str, str]) -> str:
            names = ((re.sub(r"\s*(-p|--comm) \S+|\s+\d+$", "", c), v) for c, v in commands.items())
            return ", ".join(f"{c.strip()}: {v}" for c, v in names)

        rows.append((
            r["scenario"], r["triage"], short(r["commands"]), short(r["advice"]),
            "yes" if r["triage_good"] or r["advice_good"] else "no", f"{r['noise']:.2f}",
        ))  # fmt: skip
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    cells = ([text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join(["  ".join(row).rstrip() for row in cells] + ["", *summary(results)])


def summary(results: list[dict]) -> Iterator[str]:
    """The counts below the table."""
    judged = [r for r in results if "error" not in r]
    healthy = [r for r in judged if r["triage"].startswith(("calm", "alarm"))]
    ill = [r for r in judged if r not in healthy]
    advice = [verdict for r in ill for verdict in r["advice"].values()]
    counts = {
        "named in ten lines by triage alone": [r["triage_good"] for r in ill],
        "in 24 lines": [r["triage"].startswith(("ten", "24")) for r in ill],
        "by triage or a command that it recommends": [
            r["triage_good"] or r["advice_good"] for r in ill
        ],
        "by triage or a command a sensible person types": [
            r["triage_good"] or r["commands_good"] for r in ill
        ],
        "decoys above in triage": ["decoy" in r["triage"] for r in ill],
        "decoys above in any output": [bool(r["decoys"]) for r in ill],
        "recommended commands that fail": [verdict == "fails" for verdict in advice],
        "false alarms of triage on healthy services": [not r["triage_good"] for r in healthy],
    }
    for words, hits in counts.items():
        yield f"{words + ':':50} {sum(map(bool, hits))} of {len(hits)}"
    if left := [r["scenario"] for r in judged if r["left_behind"]]:
        yield f"left processes behind: {', '.join(left)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--purebpf", default="purebpf", help="the command, with options if need be")
    parser.add_argument(
        "--python", default="", help="an interpreter with the packages that scenarios need"
    )
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--skip", default="")
    parser.add_argument("--seconds", type=int, default=10, help="of triage (default 10)")
    parser.add_argument(
        "--follow", type=int, default=4, help="so many recommendations of triage (default 4)"
    )
    parser.add_argument(
        "--noise", type=float, default=0.3, help="CPUs that other work may use (default 0.3)"
    )
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds to wait for that (default 60)"
    )
    parser.add_argument("--life", type=float, default=240, help="seconds that a scenario may live")
    parser.add_argument("--out", type=Path, help="results as JSON")
    parser.add_argument("--keep", type=Path, help="a folder for every output")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", type=Path, help="print the table of a results.json, and end")
    parser.add_argument(
        "--rescore", type=Path, help="judge the outputs in a results.json anew, and end"
    )
    options = parser.parse_args()
    if options.rescore:
        results = json.loads(options.rescore.read_text())
        rescore(results)
        options.rescore.write_text(json.dumps(results, indent=1))
        print(table(results))
        return 0
    if options.table:
        print(table(json.loads(options.table.read_text())))
        return 0
    folders = sorted(p.parent for p in HERE.glob("*/truth.json"))
    only, skip = set(filter(None, options.only.split(","))), set(options.skip.split(","))
    folders = [f for f in folders if (not only or f.name in only) and f.name not in skip]
    if options.list:
        for folder in folders:
            print(f"{folder.name:24} {json.loads((folder / 'truth.json').read_text())['cause']}")
        return 0
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    gym, results = Gym(options), []
    for folder in folders:
        try:
            result = gym.scenario(folder)
        except Exception as error:  # noqa: BLE001 - one scenario does not end the others
            result = {"scenario": folder.name, "error": f"{type(error).__name__}: {error}"}
        results.append(result)
        short = {
            k: v
            for k, v in result.items()
            if k in ("triage", "commands", "advice", "noise", "error", "left_behind")
        }
        print(f"{folder.name}: {json.dumps(short)}", file=sys.stderr, flush=True)
        if options.out:
            options.out.write_text(json.dumps(results, indent=1))
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
