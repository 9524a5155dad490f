"""The text of threads' time, golden."""

from __future__ import annotations

from purebpf.cli import places
from purebpf.cli.places import brief, pieces
from purebpf.results import Labels, Marks, Profile, Waker
from purebpf.results.formats import json
from purebpf.results.model.profile import Stack
from purebpf.results.shape.page_data import pack
from purebpf.symbols.frame import Address, Frame

APP, LIBRARY = "/srv/app/shop.py", "/usr/lib/python3.11/asyncio/base_events.py"


def py(name: str, file: str = APP) -> Frame:
    return Frame(name, 0, file, Address(2), "python")


def kernel(*names: str) -> tuple[Frame, ...]:
    return tuple(Frame(name, 0, "kernel", Address(1), "kernel") for name in names)


def names(stack: Stack | None) -> list[str]:
    return [frame.name for frame in stack or () if isinstance(frame, Frame)]


def profile() -> Profile:
    made = Profile("", unit="ns")
    sleep = (py("pause"), py("answer"), py("BaseEventLoop._run_once", LIBRARY))
    loop = (py("select", LIBRARY), py("BaseEventLoop._run_once", LIBRARY))
    made.add(
        sleep,
        kernel("do_nanosleep", "hrtimer_nanosleep"),
        3_000_000_000,
        Labels("shop", 5, 5, state="S"),
        marks=Marks(times=3),
    )
    made.add(
        loop, kernel("ep_poll", "do_epoll_wait"), 2_000_000_000, Labels("shop", 5, 5, state="S")
    )
    made.add((), kernel("futex_do_wait"), 500_000_000, Labels("shop", 5, 6, state="S"))
    return made


def test_own_functions_come_first_and_idle_waits_below() -> None:
    assert (
        "".join(pieces(profile()))
        == """\
   3.00 s  100 %  1 thread   sleeps in pause (shop.py) < answer (shop.py)
idle, waiting for something to do: 2.00 s
   2.00 s         1 thread   waits for events in select (asyncio/base_events.py)
not known, as the stack could not be read: 500 ms

1 of 1 stack, 100 % of 3.00 s, the heaviest last:

    do_nanosleep [kernel]
    hrtimer_nanosleep [kernel]
    pause (shop.py)
    answer (shop.py)
    BaseEventLoop._run_once (asyncio/base_events.py)
    -                shop (5) S
        100.0 %  3.00 s

"""
    )


def test_idle_waits_are_marked_for_the_page_and_as_json() -> None:
    marked = places.mark_idle(profile())
    assert marked.total == profile().total
    marks = {names(row.kernel)[0]: row.marks for row in marked.rows()}
    assert marks == {
        "do_nanosleep": Marks(times=3),
        "ep_poll": Marks(is_idle=True),
        "futex_do_wait": Marks(),
    }
    again = json.parse(json.document(marked))
    assert {names(row.kernel)[0]: row.marks for row in again.rows()} == marks
    labels = pack(marked).head["labels"]
    assert sorted((label["tid"], label.get("idle", 0)) for label in labels) == [
        (5, 0),
        (5, 1),
        (6, 0),
    ]


def test_samples_of_cpus_are_never_idle() -> None:
    samples = Profile("", unit="samples")
    samples.add((py("select", LIBRARY),), kernel("ep_poll"), 7, Labels("shop", 5, 5))
    assert places.mark_idle(samples) is samples


def test_the_longest_waits_stand_beside_a_file() -> None:
    lines = list(brief(profile(), 1))
    assert lines[0] == "   3.00 s  100 %  1 thread   sleeps in pause (shop.py) < answer (shop.py)\n"
    assert [line.partition(":")[0] for line in lines[1::2]] == [
        "idle, waiting for something to do",
        "not known, as the stack could not be read",
    ]
    threads = Profile("", unit="ns")
    threads.add(None, kernel("worker_thread"), 10, Labels("kworker/0:1", 9, 9, state="I"))
    assert "worker_thread [kernel]" in "".join(brief(threads, 5))


def woken(*wakers: tuple[Waker | None, int]) -> str:
    """The clauses about the waits of one place, which these ended; seconds of each."""
    made = Profile("", unit="ns")
    stack = (py("take_order"), py("answer"))
    for waker, seconds in wakers:
        made.add(
            *(stack, kernel("futex_do_wait"), seconds * 1_000_000_000, Labels("shop", 5, 6)),
            marks=Marks(waker=waker),
        )
    return " ".join("".join(brief(made, 5)).split())


def test_who_ends_the_waits_is_named_with_its_function() -> None:
    own = Waker("worker", 5, 9, (py("put_order"), py("run", LIBRARY)), ())
    other = Waker("feeder", 8, 8, (py("feed", "/srv/feed.py"),), ())
    timer = Waker("[interrupt]", 0, 0, (), kernel("hrtimer_interrupt"))
    text = woken((own, 6), (other, 3), (timer, 1))
    assert "woken by worker in put_order (shop.py) 60 %" in text
    assert "woken by feeder (8) in feed (feed.py) 30 %" in text
    assert "woken by" not in text.partition("30 %")[2]  # two are enough
    assert "woken by a timer or a device 100 %" in woken((timer, 4), (None, 4))
    assert "woken by" not in woken((None, 4))


def test_threads_of_go_lead_to_its_goroutines() -> None:
    parked = Profile("", unit="ns")
    names = ("runtime.futex.abi0", "runtime.notesleep", "runtime.findRunnable", "runtime.mcall")
    stack = tuple(Frame(name, 0, "/srv/billing", Address(0), "user") for name in names)
    labels = Labels("billing", 5, 6, state="S")
    parked.add(stack, kernel("futex_do_wait", "futex_wait"), 2_000_000_000, labels)
    text = "".join(pieces(parked))
    assert "  goroutines wait without a thread: purebpf dump 5 shows them\n" in text
    assert "goroutines" not in "".join(pieces(profile()))


def test_a_server_that_reads_waits_for_no_answer() -> None:
    server = Profile("", unit="ns")
    names = ("read", "serve", "main")
    stack = tuple(Frame(name, 0, "/srv/shopd", Address(0), "user") for name in names)
    labels = Labels("shopd", 5, 6, state="S")
    server.add(stack, kernel("wait_woken", "sk_wait_data", "tcp_recvmsg"), 2_000_000_000, labels)
    text = "".join(pieces(server))
    assert "1 thread   waits to read from a connection in serve [shopd]" in text


def test_all_has_the_stacks_of_idle_waits() -> None:
    text = "".join(pieces(profile(), everything=True))
    assert "3 of 3 stacks" in text
    assert "do_epoll_wait [kernel]" in text


def test_so_many_places_functions_and_stacks() -> None:
    made = Profile("", unit="ns")
    for number in range(20):
        frames = (py(f"pause_{number}"), py("answer"))
        made.add(frames, kernel("pipe_write"), 10**9, Labels("shop", 5, 5, state="S"))
    for top, others in ((None, 10), (3, 17)):
        text = "".join(pieces(made, top=top))
        assert f"in {others} others (all: --all)" in text
    assert "3 of 20 stacks" in text


def test_a_profile_of_kernel_stacks_is_told_by_its_functions() -> None:
    made = Profile("", unit="ns")
    made.add(None, kernel("worker_thread", "kthread"), 10, Labels("kworker/0:1", 9, 9, state="I"))
    assert "worker_thread [kernel]" in "".join(pieces(made))


def test_lines_fit_eighty_columns() -> None:
    made = Profile("", unit="ns")
    frames = tuple(py("a_function_" + "of_long_name" * n) for n in range(1, 6))
    made.add(frames, kernel("pipe_write"), 10**12, Labels("shop", 5, 5, state="S"))
    made.add(frames, kernel("pipe_write"), 10**12, Labels("an other", 6, 6, state="S"))
    assert max(len(line) for line in "".join(pieces(made)).splitlines()) <= 80


def test_threads_at_one_place_share_its_stacks() -> None:
    made = Profile("", unit="ns")
    for tid in range(50):
        made.add((py("pause"),), kernel("do_nanosleep"), 1_000, Labels("shop", 5, tid, state="S"))
    activities = places._activities(made.rows())
    assert len(activities) == 50
    assert len({id(activity.user) for activity in activities}) == 1
    assert len({id(activity.kernel) for activity in activities}) == 1
