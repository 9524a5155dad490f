"""Stacks for waits whose user stack no look could read, from what else is known. Pure.

A busy machine leaves little time for looks, and threads that wait often are seldom asleep at one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping

from purebpf.findings.facts import Activity, StackFrame

__all__ = ["fill_unread"]

_INSIDE = 3
"""Kernel functions that tell one wait in a system call from another."""
_NEAR = 4
"""User functions by which two stacks are the same wait."""
_FUTEX_MASK = ~7
"""A condition variable of glibc has two futexes side by side, which take turns."""
_MOSTLY = 0.6

User = tuple[StackFrame, ...]


def fill_unread(activities: Iterable[Activity], owners: Container[int] = ()) -> list[Activity]:
    """Looks that could not read the user stack, added to where their thread was at other looks.

    Else they have the stack of CPU samples inside of the same wait, or the stack of other
    threads of the process that wait for the same futex, or in the same call and function of the
    kernel, if these are all in one place. A thread that owns a lock (`owners`) is not like those
    that wait beside it.
    """
    merged = _merge(activities)
    samples = _samples(merged)
    filled = [
        one._replace(user=_by_samples(one, samples.get(one.tid, ()))) if _is_unread(one) else one
        for one in merged
    ]
    roles = _roles(filled)
    shared = _by_futex(filled, roles)
    return _merge(
        one._replace(user=shared.get(_futex(one, roles), ()))
        if _is_unread(one) and one.call and one.tid not in owners
        else one
        for one in filled
    )


def _is_unread(activity: Activity) -> bool:
    return not activity.user and activity.kind == "wait"


def _merge(activities: Iterable[Activity]) -> list[Activity]:
    whole: dict[tuple[object, ...], int] = {}
    merged: list[Activity] = []
    for activity in sorted(activities, key=lambda one: -len(one.user)):
        at = next((whole[key] for key in _keys(activity) if key in whole), None)
        if activity.user or at is None or activity.kind == "cpu":
            for key in _keys(activity):
                whole.setdefault(key, len(merged))
            merged.append(activity)
        else:
            merged[at] = merged[at]._replace(seconds=merged[at].seconds + activity.seconds)
    return merged


def _keys(activity: Activity) -> Iterable[tuple[object, ...]]:
    """The place of a wait, as exactly as it is known, and less exactly."""
    place = (activity.tid, activity.kind, activity.state, activity.kernel, activity.call)
    yield (*place, activity.argument)
    if activity.call == "futex":
        yield (*place, "near", activity.argument & _FUTEX_MASK)


def _samples(activities: Iterable[Activity]) -> dict[int, list[Activity]]:
    """CPU time inside of the kernel by thread."""
    samples: dict[int, list[Activity]] = defaultdict(list)
    for activity in activities:
        if activity.kind == "cpu" and activity.kernel and activity.user:
            samples[activity.tid].append(activity)
    return samples


def _by_samples(wait: Activity, samples: Iterable[Activity]) -> User:
    """The user stack of CPU samples inside of the functions that a thread waits in."""
    inside = set(wait.kernel[:_INSIDE])
    return _only(one for one in samples if inside.intersection(one.kernel))


def _roles(activities: Iterable[Activity]) -> dict[int, frozenset[str]]:
    """The calls that each thread waits in: workers of one kind have the same calls."""
    calls: dict[int, set[str]] = defaultdict(set)
    for activity in activities:
        if activity.kind == "wait":
            calls[activity.tid].add(activity.call)
    return {tid: frozenset(names) for tid, names in calls.items()}


def _by_futex(
    activities: Iterable[Activity], roles: Mapping[int, frozenset[str]]
) -> dict[tuple[object, ...], User]:
    """The stack of the threads of a role that wait for a futex or in a call, where there is one."""
    groups: dict[tuple[object, ...], list[Activity]] = defaultdict(list)
    for activity in activities:
        if activity.kind == "wait" and activity.call and activity.user:
            groups[_futex(activity, roles)].append(activity)
    return {key: _only(group) for key, group in groups.items()}


def _futex(activity: Activity, roles: Mapping[int, frozenset[str]]) -> tuple[object, ...]:
    kind = (activity.state, activity.kernel[:_INSIDE], roles.get(activity.tid))
    what = activity.argument & _FUTEX_MASK if activity.call == "futex" else 0
    return (activity.pid, activity.call, what, *kind)


def _only(activities: Iterable[Activity]) -> User:
    """The heaviest stack, if most of the time is near its place; else ()."""
    weights: Counter[User] = Counter()
    places: Counter[tuple[str, ...]] = Counter()
    for one in activities:
        weights[one.user] += round(1e6 * one.seconds)
        places[_place(one.user)] += round(1e6 * one.seconds)
    if not weights:
        return ()
    place, most = places.most_common(1)[0]
    if most < _MOSTLY * places.total():
        return ()
    return next(user for user, _ in weights.most_common() if _place(user) == place)


def _place(user: User) -> tuple[str, ...]:
    return tuple(frame.name for frame in user[:_NEAR])
