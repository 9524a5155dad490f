"""CPU time by program and own function."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from purebpf.findings.evidence import Evidence, Stay, seconds_of
from purebpf.findings.facts import StackFrame
from purebpf.findings.finding import Finding
from purebpf.findings.ownership import RESOLVER, is_interpreter, short_name
from purebpf.findings.words import chief, share, way_to

__all__ = ["busiest_function", "busiest_own", "busy_programs"]

_LEAST = 0.08
_GONE = ("", "")
_SYSTEM_FILES = re.compile(r"/(libc|ld-linux|libpthread|libstdc|ld-musl)[^/]*$")
_TOO_GENERAL = re.compile(
    r"Start|Entry|main|uv_run|uv__io|RunMicro|Invoke|Execute$|Call|clone|thread|_PyEval|PyObject"
    r"|Builtins_Interp|SpinEvent|Run$|^_|JavaThread|php_cli|execute_ex|zend_execute|ngx_(worker|single"
    r"|process_events|master|spawn|epoll)|ServerLoop|BackendStart|PostmasterMain|exec_simple|PortalRun"
    r"|ProcessQuery|standard_|ExecutorRun"
)
_ASKED_FOR_NOTHING = re.compile(r"Builtins_|HandleApiCall|FunctionCallback|Invoke|CEntry")
_MEMORY_CALLS = re.compile(r"__mem|_int_|malloc|__GI|cfree")
_ALLOCATOR = re.compile(
    r"(__libc_|__GI___libc_|je_|tc_|mi_)?(malloc|calloc|realloc|free|cfree)$|_int_(malloc|free)"
    r"|malloc_consolidate|operator (new|delete)|unlink_chunk|tcache_"
)
_MOSTLY = 0.4
"""The part of the time from which one function says enough."""
_MUCH_ALLOCATION, _MUCH_KERNEL = 0.25, 0.3
_ENOUGH = 0.1
"""The part of a thread's time whose stacks stand for the others, which were cut off."""
_ANY_NEW = 0
"""Stands for the threads of all new processes."""
_SCRIPT = re.compile(r"\.[a-z]{1,4}$")
_READ_AGAIN = 2.0
"""Opens of one file a second."""
_CALL = re.compile(r"__(?:x64|arm64|ia32|se)_sys_(\w+)$")
_POLLS, _MANY_FILES = re.compile(r"do_sys_poll|do_poll|do_select|core_sys_select"), 300
_FAULT = re.compile(r"(asm_)?exc_page_fault$|do_page_fault$|el0_da$")
_PYTHON_CALLERS = frozenset({"<module>", "_bootstrap"})


def busy_programs(evidence: Evidence) -> Iterator[Finding]:
    """Programs that use CPU time, with the functions that it goes to."""
    groups: dict[tuple[str, str], list[Stay]] = defaultdict(list)
    for stay in evidence.cpu:
        groups[evidence.family(stay.pid)].append(stay)
    for family, stays in groups.items():
        cost = evidence.rate(stays)
        if cost >= _LEAST and family != _GONE:
            yield _busy(evidence, stays, cost)


def _busy(evidence: Evidence, stays: list[Stay], cost: float) -> Finding:
    pids = chief(stays)
    in_kernel = seconds_of(stay for stay in stays if stay.kernel) / seconds_of(stays)
    stays = _without_cut(evidence, stays)
    total_s = seconds_of(stays)
    own = _own_functions(stays)
    text, evidences = f"uses {cost:.2f} CPUs{_runtime(evidence, pids[0])}", list[str]()
    source = None
    if own:
        (frame, own_s), *others = own[:3]
        source = evidence.source(frame)
        text += f": {evidence.spell(frame)} {share(own_s, total_s)}"
        text += _callee(evidence, stays, frame, total_s)
        evidences.append(_way(evidence, stays, frame))
        if others and others[0][1] > 0.1 * total_s:
            evidences.append(f"also {evidence.spell(others[0][0])} {share(others[0][1], total_s)}")
        if own_s < _MOSTLY * total_s:
            evidences.insert(0, _deepest_common(stays, total_s))
    else:
        text += _script(evidence, pids[0])
        text += _without_own(evidence, stays, total_s)
        evidences.append(_deepest_common(stays, total_s))
    text += _library(evidence, stays, total_s)
    if in_kernel > _MUCH_KERNEL:
        text += f", {share(in_kernel, 1.0)} in the kernel{_entry(stays)}"
    evidences.insert(1, _allocation(stays, total_s))
    evidences.insert(1, _polled(evidence, stays, pids[0], total_s))
    evidences.append(_leaves(stays, total_s))
    text += _threads(evidence, stays, pids[0], total_s)
    if any("_run_once" in f.name or "uv_run" in f.name for s in stays for f in s.user):
        text += ", in its event loop"
    return Finding(
        *("cpu", evidence.process(pids[0]).comm, pids, cost, text),
        tuple(filter(None, evidences)),
        ("profile", "--tree", "-p", str(pids[0])),
        own=source,
    )


def busiest_function(evidence: Evidence, stays: list[Stay]) -> str:
    """The functions that CPU time goes to, with their shares; "" if none has a name."""
    stays = _without_cut(evidence, stays)
    total_s, own = seconds_of(stays), _own_functions(stays)
    if own and own[0][1] >= _MOSTLY * total_s:
        return f"{evidence.spell(own[0][0])} {share(own[0][1], total_s)}"
    common = _deepest_common(stays, total_s).removeprefix("most of it in ")
    if not common and own and own[0][1] >= _MOSTLY * sum(seconds for _, seconds in own):
        return f"{evidence.spell(own[0][0])} {share(own[0][1], total_s)}"  # others were cut
    return common or _without_own(evidence, stays, total_s).removeprefix(": ").partition("; by ")[0]


def busiest_own(stays: list[Stay]) -> StackFrame | None:
    """The own function that most of the CPU time goes to; None if none is known."""
    own = _own_functions(stays)
    return own[0][0] if own else None


def _without_cut(evidence: Evidence, stays: list[Stay]) -> list[Stay]:
    """Leave out stacks of one frame, or none, of threads that have whole ones.

    They are of the time before a process could be unwound, and say nothing of who called. New
    processes stand for each other: some of them end before they can be unwound.
    """
    total: Counter[int] = Counter()
    whole: Counter[int] = Counter()
    keys = [_ANY_NEW if evidence.is_new(stay.pid) else stay.tid for stay in stays]
    for key, stay in zip(keys, stays, strict=True):
        total[key] += round(1e6 * stay.seconds)
        whole[key] += round(1e6 * stay.seconds) * (len(stay.user) > 1)
    return [
        stay
        for key, stay in zip(keys, stays, strict=True)
        if len(stay.user) > 1 or whole[key] < max(1, _ENOUGH * total[key])
    ]


def _runtime(evidence: Evidence, pid: int) -> str:
    """The interpreter of a process that has given itself another name."""
    process = evidence.process(pid)
    name = process.exe.rpartition("/")[2]
    is_other = is_interpreter(process.exe) and not name.startswith(process.comm)
    return f" ({name})" if is_other else ""


def _script(evidence: Evidence, pid: int) -> str:
    """The script of an interpreter whose functions have no names here."""
    process = evidence.process(pid)
    words = process.command.split()
    if not is_interpreter(process.exe) or not words:
        return ""
    names = [word for word in words[1:] if not word.startswith("-")]
    named = next(filter(_SCRIPT.search, names), "")
    return f" in {named.rpartition('/')[2]}" if named else ""


def _own_functions(stays: list[Stay]) -> list[tuple[StackFrame, float]]:
    """Own functions with their seconds, the heaviest first.

    The first lines of a script count only where nothing of a library is below them.
    """
    weights: Counter[tuple[str, str]] = Counter()
    frames: dict[tuple[str, str], Counter[StackFrame]] = defaultdict(Counter)
    for stay in stays:
        own = stay.own
        if own is None:
            continue
        if own.name == "<module>":
            innermost = next((frame for frame in stay.user if frame.kind == "python"), None)
            if innermost is not own:
                continue
        key = own.name, own.module
        weights[key] += round(1e6 * stay.seconds)
        frames[key][own] += round(1e6 * stay.seconds)
    return [
        (frames[key].most_common(1)[0][0], weight / 1e6) for key, weight in weights.most_common()
    ]


def _way(evidence: Evidence, stays: list[Stay], frame: StackFrame) -> str:
    ways: Counter[str] = Counter()
    for stay in stays:
        if stay.own is not None and stay.own.name == frame.name:
            ways[way_to(evidence, stay)] += round(1e6 * stay.seconds)
    way = ways.most_common(1)[0][0] if ways else ""
    return f"by {way}" if " > " in way else ""


def _callee(evidence: Evidence, stays: list[Stay], frame: StackFrame, total_s: float) -> str:
    """A clause about the function of the C library that an own one spends its time in."""
    called: Counter[str] = Counter()
    for stay in stays:
        if stay.own is None or (stay.own.name, stay.own.module) != (frame.name, frame.module):
            continue
        inside = stay.user[: stay.user.index(stay.own)]
        outermost = next(
            (
                one
                for one in reversed(inside)
                if _is_named(one) and _SYSTEM_FILES.search(one.module) and one.kind == "user"
            ),
            None,
        )
        if outermost is not None and not _MEMORY_CALLS.match(outermost.name):
            called[short_name(outermost.name)] += round(1e6 * stay.seconds)
    name, most = called.most_common(1)[0] if called else ("", 0)
    if most / 1e6 < _MOSTLY * total_s:
        return ""
    return f", in {name}{_file_of(evidence, stays, name)}"


def _file_of(evidence: Evidence, stays: list[Stay], name: str) -> str:
    """The file that a function of the resolver reads each time."""
    pids = {stay.pid for stay in stays}
    opened = Counter(
        {
            one.path: one.times
            for one in evidence.facts.paths
            if one.pid in pids and one.path and one.call != "connect"
        }
    )
    path = opened.most_common(1)[0][0] if opened else ""
    is_read_again = opened[path] >= _READ_AGAIN * evidence.elapsed_s
    return f" (reads {path})" if is_read_again and RESOLVER.search(name) else ""


def _without_own(evidence: Evidence, stays: list[Stay], total_s: float) -> str:
    """For programs whose own functions have no names: Python's library, a JIT's runtime."""
    asked, heads = Counter[str](), Counter[str]()
    callers: dict[str, Counter[str]] = defaultdict(Counter)
    for stay in stays:
        weight = round(1e6 * stay.seconds)
        if (request := _asked_for(stay.user)) is not None:
            asked[request] += weight
        scripted = [
            frame
            for frame in stay.user
            if frame.kind == "python" and frame.name not in _PYTHON_CALLERS
        ]
        if scripted:
            head, *path = map(evidence.spell, scripted[:3])
            heads[head] += weight
            callers[head][" > ".join(reversed(path))] += weight
    named = [
        f"{name} {share(weight / 1e6, total_s)}"
        for name, weight in asked.most_common(3)
        if weight / 1e6 > 0.05 * total_s
    ]
    if named:
        return f": its code asks for {', '.join(named)}"
    if not heads:
        return ""
    most = heads.most_common(2)
    text = ", ".join(f"{head} {share(weight / 1e6, total_s)}" for head, weight in most)
    way = callers[most[0][0]].most_common(1)[0][0]
    return f": {text}" + (f"; by {way}" if way else "")


def _asked_for(user: tuple[StackFrame, ...]) -> str | None:
    """The outermost function that code without names has called: JSON.parse, preg_match."""
    php = next((frame.name[4:] for frame in user if frame.name.startswith("zif_")), None)
    if php is not None:
        return f"{php}()"
    first = next((at for at, frame in enumerate(user) if not frame.name), 0)
    for frame in reversed(user[:first]):
        name = short_name(frame.name)
        if not _ASKED_FOR_NOTHING.search(name) and "!0x" not in name:
            return name
    return None


def _deepest_common(stays: list[Stay], total_s: float) -> str:
    """The deepest functions below which most of the time passes."""
    if any(frame.kind == "python" for stay in stays for frame in stay.user):
        return ""
    below: Counter[str] = Counter()
    depths: dict[str, list[int]] = defaultdict(list)
    for stay in stays:
        names = dict.fromkeys(short_name(frame.name) for frame in stay.user if _is_named(frame))
        for depth, name in enumerate(names):
            below[name] += round(1e6 * stay.seconds)
            depths[name].append(depth)
    common = [
        name
        for name, weight in below.items()
        if weight / 1e6 > 0.4 * total_s and not _TOO_GENERAL.search(name)
    ]
    common.sort(key=lambda name: sum(depths[name]) / len(depths[name]))
    named = [f"{name} {share(below[name] / 1e6, total_s)}" for name in common[:3]]
    return f"most of it in {', '.join(named)}" if named else ""


def _entry(stays: Iterable[Stay]) -> str:
    """Return the entry to the kernel that took most of the time: ` (page faults)`, ` (write)`."""
    entries: Counter[str] = Counter()
    for stay in stays:
        names = [match[1] for name in stay.kernel if (match := _CALL.match(name))]
        is_fault = any(_FAULT.search(name) for name in stay.kernel)
        kind = "page faults" if is_fault and not names else "".join(names[-1:])
        entries[kind] += round(1e6 * stay.seconds) * bool(stay.kernel)
    kind, most = entries.most_common(1)[0] if entries else ("", 0)
    return f" ({kind})" if kind and most > _MOSTLY * entries.total() else ""


def _polled(evidence: Evidence, stays: list[Stay], pid: int, total_s: float) -> str:
    """A clause about poll(2) and select(2) with thousands of descriptors."""
    asking_s = seconds_of(stay for stay in stays if any(map(_POLLS.match, stay.kernel)))
    files = max(evidence.process(pid).files, default=0)
    if asking_s < _MOSTLY * total_s or files < _MANY_FILES:
        return ""
    return f"each poll looks at all of its {files} descriptors; epoll does not"


def _is_named(frame: StackFrame) -> bool:
    return bool(frame.name) and "!0x" not in frame.name and not frame.name.startswith("[")


def _library(evidence: Evidence, stays: list[Stay], total_s: float) -> str:
    """A library that the time goes to, if one stands out."""
    libraries: Counter[str] = Counter()
    for stay in stays:
        exe = evidence.process(stay.pid).exe
        for frame in stay.user:
            if frame.kind == "python" or not frame.module or _SYSTEM_FILES.search(frame.module):
                continue
            if ".so" in frame.module and frame.module != exe and not is_interpreter(frame.module):
                libraries[frame.module.rpartition("/")[2]] += round(1e6 * stay.seconds)
            break
    for name, weight in libraries.most_common(1):
        if weight / 1e6 > 0.3 * total_s and "libpython" not in name and "libjvm" not in name:
            return f", in {name} {share(weight / 1e6, total_s)}"
    return ""


def _allocation(stays: Iterable[Stay], total_s: float) -> str:
    """The part of the time below the allocator, if it is much."""
    allocating_s = seconds_of(
        stay for stay in stays if any(_ALLOCATOR.match(frame.name) for frame in stay.user)
    )
    if allocating_s < _MUCH_ALLOCATION * total_s:
        return ""
    return f"{share(allocating_s, total_s)} in the memory allocator (malloc, free)"


def _leaves(stays: Iterable[Stay], total_s: float) -> str:
    leaves: Counter[str] = Counter()
    for stay in stays:
        named = (f for f in stay.user if _is_named(f) and not _MEMORY_CALLS.match(f.name))
        frame = next(named, None)
        if frame is not None and stay.own is not frame:
            leaves[short_name(frame.name)] += round(1e6 * stay.seconds)
    named_leaves = [
        f"{name} {share(weight / 1e6, total_s)}"
        for name, weight in leaves.most_common(3)
        if weight / 1e6 > 0.05 * total_s
    ]
    return f"at the top {', '.join(named_leaves)}" if named_leaves else ""


def _threads(evidence: Evidence, stays: list[Stay], pid: int, total_s: float) -> str:
    names: Counter[str] = Counter()
    for stay in stays:
        names[re.sub(r"[-#\d]+$", "", stay.comm)] += round(1e6 * stay.seconds)
    name, weight = names.most_common(1)[0]
    if not name or evidence.process(pid).comm.startswith(name) or weight / 1e6 < 0.25 * total_s:
        return ""
    return f'; threads "{name}" {share(weight / 1e6, total_s)}'
