"""Time by own function, and idle waits apart from work."""

from __future__ import annotations

from purebpf.findings.facts import Activity, StackFrame
from purebpf.findings.places import IDLE, UNREAD, WORK, sum_places

SLEEP = ("do_nanosleep", "hrtimer_nanosleep", "__x64_sys_clock_nanosleep")
FUTEX = ("futex_do_wait", "__futex_wait", "futex_wait")
APP, LIB = "/srv/app/shop.py", "/usr/lib/python3.11"


def py(name: str, file: str = APP) -> StackFrame:
    return StackFrame(name, file, 0, "python")


def wait(tid: int, kernel: tuple[str, ...], *user: StackFrame, s: float = 1.0) -> Activity:
    return Activity(7, tid, "python3", "wait", "S", s, kernel, user, times=3)


IN_LOOP = (
    py("pause"),
    py("answer"),
    py("BaseEventLoop._run_once", f"{LIB}/asyncio/base_events.py"),
)
OF_POOL = (
    py("_worker", f"{LIB}/concurrent/futures/thread.py"),
    py("Thread.run", f"{LIB}/threading.py"),
)


def test_a_sleep_below_a_loop_is_work_and_a_pool_is_idle() -> None:
    places = sum_places([wait(7, SLEEP, *IN_LOOP, s=4.0), wait(8, FUTEX, *OF_POOL, s=5.0)])
    assert [(p.kind, p.use, p.path[0]) for p in places] == [
        ("cond", IDLE, "_worker (concurrent/futures/thread.py)"),
        ("sleep", WORK, "pause (shop.py)"),
    ]


def test_equal_threads_are_one_place() -> None:
    (place,) = sum_places([wait(tid, FUTEX, py("charge"), py("serve")) for tid in range(9)])
    assert (place.threads, place.kind, place.use, place.seconds) == (9, "lock", WORK, 9.0)
    assert (place.times, place.pids) == (27, (7,))
    assert place.path == ("charge (shop.py)", "serve (shop.py)")


def test_a_wait_without_a_user_stack_is_neither_work_nor_idle() -> None:
    assert sum_places([wait(7, FUTEX)])[0].use == UNREAD
    assert sum_places([wait(7, ("jbd2_log_wait_commit", "ext4_sync_file"))])[0].use == WORK


def test_recursion_names_a_function_once() -> None:
    (place,) = sum_places([wait(7, FUTEX, py("walk"), py("walk"), py("main_loop"))])
    assert place.path == ("walk (shop.py)", "main_loop (shop.py)")


READ = ("wait_woken", "sk_wait_data", "tcp_recvmsg_locked", "tcp_recvmsg")
PERL = (
    StackFrame("__libc_recv", "/usr/lib/libc.so.6"),
    StackFrame("Perl_pp_sysread", "/usr/bin/perl"),
)


def test_short_answers_to_an_unnamed_function_are_work() -> None:
    asking = wait(7, READ, *PERL, s=1.0)._replace(times=200)
    assert [(p.kind, p.use) for p in sum_places([asking])] == [("sock-read", WORK)]
    for quiet in (asking._replace(times=4), asking._replace(seconds=20.0)):
        assert sum_places([quiet])[0].use == IDLE
    accepting = wait(7, ("inet_csk_accept", "do_accept"), *PERL[1:], s=1.0)
    assert {p.use for p in sum_places([asking, accepting])} == {IDLE}


def test_functions_of_an_interpreter_are_not_the_programs_own() -> None:
    frames = (StackFrame("uv__io_poll", "/opt/bin/node"), StackFrame("uv_run", "/opt/bin/node"))
    place = sum_places([wait(7, ("ep_poll", "do_epoll_wait"), *frames)])[0]
    assert (place.kind, place.use, place.path) == ("epoll", IDLE, ("uv__io_poll [node]",))


def test_functions_of_an_executable_are_own_and_the_c_library_is_not() -> None:
    shop = "/opt/shop/bin/shop"
    frames = (
        StackFrame("__lll_lock_wait", "/lib/x86_64-linux-gnu/libc.so.6"),
        StackFrame("pthread_mutex_lock", "/lib/x86_64-linux-gnu/libc.so.6"),
        StackFrame("Cache::find(int)", shop),
        StackFrame("serve(int)", shop),
    )
    place = sum_places([wait(9, FUTEX, *frames)])[0]
    assert (place.kind, place.use) == ("lock", WORK)
    assert place.path == ("Cache::find [shop]", "serve [shop]")


def test_time_on_a_cpu_and_in_a_run_queue_is_work() -> None:
    run = Activity(7, 7, "python3", "cpu", "", 2.0, (), (py("build"),))
    queue = run._replace(kind="queue", seconds=1.0)
    assert [(p.kind, p.use) for p in sum_places([run, queue])] == [("cpu", WORK), ("queue", WORK)]


def test_a_process_has_its_own_name() -> None:
    assert sum_places([wait(8, SLEEP, *IN_LOOP)], {7: "shop"})[0].process == "shop"


def test_the_holder_of_a_lock_that_sleeps_is_not_idle() -> None:
    waits = wait(8, FUTEX, py("price"), py("serve"), s=3.0)
    holds = wait(9, SLEEP, py("refresh"), py("price"), py("serve"))
    assert [(p.kind, p.use) for p in sum_places([waits, holds])] == [
        ("lock", WORK),
        ("sleep", WORK),
    ]
    alone = sum_places([holds, waits._replace(tid=9)])
    assert {p.kind: p.use for p in alone}["sleep"] == IDLE
    assert sum_places([holds])[0].use == IDLE


def test_a_poll_of_the_resolver_waits_for_a_name_server() -> None:
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    resolver = (StackFrame("__poll", libc), StackFrame("__res_context_send", libc))
    poll = ("do_sys_poll", "__x64_sys_poll")
    (place,) = sum_places([wait(7, poll, *resolver, py("ask"), py("serve"))])
    assert (place.kind, place.use, place.path[0]) == ("dns", WORK, "ask (shop.py)")
    (other,) = sum_places([wait(7, poll, resolver[0], py("ask"), py("serve"))])
    assert other.kind == "poll"


def test_a_package_tells_equal_file_names_apart() -> None:
    framework = py("dispatch", "/v/lib/python3.11/site-packages/flask/app.py")
    places = sum_places(
        [wait(7, SLEEP, framework), wait(8, SLEEP, py("pause", "/srv/shop/app.py"))]
    )
    assert sorted(place.path[0] for place in places) == [
        "dispatch (flask/app.py)",
        "pause (app.py)",
    ]


def test_methods_of_java_are_own_where_no_library_has_them() -> None:
    java = "/usr/lib/jvm/jdk/bin/java"
    frames = (
        StackFrame("JVM_Sleep", "/usr/lib/jvm/jdk/lib/server/libjvm.so"),
        StackFrame("java.lang.Thread.sleep", "[jit]"),
        StackFrame("com.acme.Till.pause", "[jit]"),
        StackFrame("com.acme.Till.charge", "[jit]"),
        StackFrame("java.util.concurrent.FutureTask.run", "[jit]"),
        StackFrame("java.lang.Thread.run", "[jit]"),
        StackFrame("main", java),
    )
    place = sum_places([wait(7, FUTEX, *frames)])[0]
    assert (place.kind, place.use) == ("sleep", WORK)
    assert place.path == ("com.acme.Till.pause", "com.acme.Till.charge")


def native(*names: str) -> tuple[StackFrame, ...]:
    libc = StackFrame("pthread_cond_wait", "/usr/lib/libc.so.6")
    return (libc, *(StackFrame(name, "/srv/gated") for name in names))


def test_a_condition_inside_of_a_request_is_work() -> None:
    """One look at a thread shows one wait: the functions around it tell what it does."""
    for path in (
        ("wait_for_quota", "handle_request(int)", "main"),
        ("Gate::enter()", "Server::handleLogin(Session&)", "Server::run()"),
    ):
        (place,) = sum_places([wait(7, FUTEX, *native(*path))])
        assert (place.kind, place.use) == ("cond", WORK), path


def test_a_condition_of_a_worker_is_idle() -> None:
    for path in (
        ("take_job", "handle_jobs", "main"),
        ("Pool::wait_for_work()", "serve_requests", "main"),
        ("Pool::next()", "process_all", "main"),
        ("Server::park()", "Server::serve_forever()", "main"),
        ("worker",),
    ):
        (place,) = sum_places([wait(7, FUTEX, *native(*path))])
        assert (place.kind, place.use) == ("cond", IDLE), path


def test_lines_of_a_function_are_one_place() -> None:
    def at(line: int, caller: int, s: float) -> Activity:
        frames = (py("crunch")._replace(line=line), py("serve")._replace(line=caller))
        return Activity(7, 7, "python3", "cpu", "", s, (), frames)

    (place,) = sum_places([at(12, 40, 1.0), at(14, 40, 3.0), at(12, 40, 0.5)])
    assert place.path == ("crunch (shop.py)", "serve (shop.py:40)")
    assert place.lines == ((14, 3.0), (12, 1.5))
    (place,) = sum_places([at(12, 40, 1.0), at(12, 41, 1.0)])
    assert place.path == ("crunch (shop.py:12)", "serve (shop.py)")
    assert place.lines == ()


def test_main_stands_for_a_program_whose_other_functions_are_inlined() -> None:
    grower = "/opt/grower"
    names = ("runtime.memclr", "runtime.makeslice", "main.main", "runtime.main", "runtime.goexit")
    frames = [StackFrame(name, grower, 0, "user") for name in names]
    activity = Activity(7, 7, "grower", "cpu", "", 1.0, (), tuple(frames))
    assert sum_places([activity])[0].path == ("main.main [grower]",)
    frames[1] = StackFrame("main.remember", grower, 0, "user")
    activity = activity._replace(user=tuple(frames))
    assert sum_places([activity])[0].path == ("main.remember [grower]",)
