"""What threads wait for, by the functions of their stacks."""

from __future__ import annotations

import pytest

from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.tools.lock.regions import Regions
from purebpf.tools.lock.request import USER_TYPES
from purebpf.tools.lock.user_types import describe

LIBC, PROGRAM, PYTHON = "/lib/libc.so.6", "/usr/bin/service", "/usr/bin/python3.11"


def frames(*stack: str, modules: dict[str, str] | None = None) -> list[Frame | Unknown]:
    where = modules or {}
    return [Frame(name, 0, where.get(name, PROGRAM), Address(16), "user") for name in stack]


@pytest.mark.parametrize(
    ("stack", "kind", "caller"),
    [
        (("__GI___lll_lock_wait", "pthread_mutex_lock", "work", "main"), "mutex", "work"),
        (("__futex_wait", "pthread_cond_wait", "serve", "main"), "condition", "serve"),
        (("futex_wait", "pthread_rwlock_rdlock", "look_up"), "rwlock", "look_up"),
        (("do_futex_wait.constprop.0", "__new_sem_wait_slow64", "consume"), "semaphore", "consume"),
        (("pthread_barrier_wait", "phase"), "barrier", "phase"),
        (("__pthread_clockjoin_ex", "pthread_join", "main"), "join", "main"),
        (("std::sys::sync::mutex::futex::Mutex::lock_contended", "app::run"), "mutex", "app::run"),
        (("std::sync::poison::condvar::Condvar::wait", "app::queue"), "condition", "app::queue"),
        (("runtime.futex", "runtime.futexsleep", "runtime.notesleep", "runtime.stopm"), "idle", ""),
        (("runtime.futex", "runtime.futexsleep", "runtime.lock2", "main.f"), "mutex", "main.f"),
        (("spin_then_sleep", "main"), "futex", "spin_then_sleep"),
        (("syscall", "void std::__detail::__platform_wait<int>(int const*, int)",
          "std::__atomic_semaphore::_M_acquire()", "std::counting_semaphore<1l>::acquire()",
          "shop::take()"), "semaphore", "shop::take()"),
        (("void std::__atomic_wait_address_v<int, std::atomic<int>::f(int)::{lambda()#1}>(int)",
          "std::vector<int> shop::poll<int>(std::atomic<int>&)", "main"),
         "futex", "std::vector<int> shop::poll<int>(std::atomic<int>&)"),
        (("pthread_rwlock_wrlock", "__glibcxx_rwlock_wrlock(pthread_rwlock_t*)",
          "std::shared_mutex::lock()", "shop::set()"), "rwlock", "shop::set()"),
        (("syscall", "std::latch::wait(long) const", "shop::start()"), "barrier", "shop::start()"),
    ],
)  # fmt: skip
def test_the_innermost_functions_say_what_it_is(stack, kind, caller):
    modules = dict.fromkeys(("__futex_wait", "futex_wait", "syscall"), LIBC)
    assert describe(frames(*stack, modules=modules)) == (kind, caller)
    assert kind in USER_TYPES


def test_python_waits_for_its_gil():
    inside = frames("pthread_cond_timedwait", "python3.11!0x4f92c0", modules={
        "pthread_cond_timedwait": LIBC, "python3.11!0x4f92c0": PYTHON,
    })  # fmt: skip
    called = Frame("Handler.get", 0, "/srv/app.py", Address(32), "python")
    assert describe([*inside, called]) == ("GIL", "Handler.get")
    named = frames("pthread_cond_timedwait", "take_gil", "PyEval_RestoreThread")
    assert describe([*named, called]) == ("GIL", "Handler.get")


def test_a_lock_of_python_is_not_a_semaphore():
    stack = frames("sem_clockwait", "PyThread_acquire_lock_timed", "lock_acquire", modules={
        "sem_clockwait": LIBC, "PyThread_acquire_lock_timed": PYTHON, "lock_acquire": PYTHON,
    })  # fmt: skip
    called = Frame("Queue.get", 0, "queue.py", Address(32), "python")
    assert describe([*stack, called]) == ("python lock", "Queue.get")


THREADING, QUEUE = "/usr/lib/python3.11/threading.py", "/usr/lib/python3.11/queue.py"


@pytest.mark.parametrize(
    ("functions", "kind"),
    [
        ([("Condition.wait", THREADING), ("Queue.get", QUEUE)], "condition"),
        ([("Condition.wait", THREADING), ("Event.wait", THREADING)], "condition"),
        ([("Condition.wait", THREADING), ("Queue.put", QUEUE)], "python lock"),
        ([("Condition.wait", THREADING), ("Semaphore.acquire", THREADING)], "python lock"),
        ([("Thread._wait_for_tstate_lock", THREADING), ("Thread.join", THREADING)], "join"),
        ([("Condition.wait", "/srv/condition.py"), ("Event.wait", "/srv/app.py")], "python lock"),
    ],
)
def test_a_lock_of_python_is_used_for_queues_and_conditions(functions, kind):
    stack = frames("sem_clockwait", "PyThread_acquire_lock_timed", modules={
        "sem_clockwait": LIBC, "PyThread_acquire_lock_timed": PYTHON,
    })  # fmt: skip
    called = [Frame(name, 0, file, Address(32), "python") for name, file in functions]
    own = Frame("serve", 0, "/srv/app.py", Address(32), "python")
    assert describe([*stack, *called, own]).type == kind


def test_a_worker_of_a_pool_of_python_is_idle():
    modules = {
        "sem_wait": LIBC,
        "PyThread_acquire_lock_timed": PYTHON,
        "_queue_SimpleQueue_get_impl": "/usr/lib/python3.11/lib-dynload/_queue.so",
    }
    stack = frames(*modules, modules=modules)
    worker = Frame(
        "_worker", 0, "/usr/lib/python3.11/concurrent/futures/thread.py", Address(32), "python"
    )
    assert describe([*stack, worker]) == ("idle", "_worker")


@pytest.mark.parametrize("start", ["main", "shop::Pool::grow(int)"])
def test_a_lambda_inside_of_a_thread_has_the_name_of_its_function(start):
    run = (
        f"std::thread::_State_impl<std::thread::_Invoker<std::tuple<{start}::{{lambda()#1}}> >"
        " >::_M_run()"
    )
    modules = {
        "__lll_lock_wait": LIBC,
        "pthread_mutex_lock": LIBC,
        run: PROGRAM,
        "execute_native_thread_routine": "/lib/libstdc++.so.6",
    }
    stack = frames(*modules, modules=modules)
    assert describe(stack) == ("mutex", f"{start}::{{lambda()#1}}")


def test_a_stack_without_names_says_nothing():
    lost = Unknown(Reason.EXITED, "", Address(1), "user")
    assert describe([lost]) == ("futex", "")
    assert describe([]) == ("futex", "")


MAPS = "".join(
    f"{line}\n"
    for line in (
        "55d000000000-55d000001000 r--p 00000000 08:01 17 /usr/bin/service",
        "55d000001000-55d000004000 rw-p 00001000 08:01 17 /usr/bin/service",
        "55d000004000-55d000006000 rw-p 00000000 00:00 0 ",
        "55d100000000-55d100021000 rw-p 00000000 00:00 0 [heap]",
        "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 ",
    )
)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (0x55D000002010, "0x55d000002010 in service+0x2010"),
        (0x55D000005000, "0x55d000005000 in service+0x5000"),
        (0x55D100000040, "0x55d100000040 in [heap]"),
        (0x7F0000000040, "0x7f0000000040"),
        (0x1000, "0x1000"),
        (0x7FFF00000000, "0x7fff00000000"),
    ],
)
def test_a_lock_is_named_by_what_is_mapped(address, name):
    assert Regions(lambda _: MAPS).name(1, address) == name
    assert Regions(lambda _: None).name(1, address) == f"{address:#x}"


def test_a_lock_that_is_a_variable_has_its_name():
    asked = []

    def variable(pid, path, address):
        asked.append((pid, path, address))
        return "cache_lock+0x8"

    regions = Regions(lambda _: MAPS, variable)
    assert regions.name(1, 0x55D000002010) == "cache_lock+0x8 in service"
    assert regions.name(1, 0x55D100000040) == "0x55d100000040 in [heap]"
    assert [address for *_, address in asked] == [0x55D000002010]


JVM = "/opt/jdk/lib/server/libjvm.so"
PARKED = ("pthread_cond_wait", "Parker::park(bool, long)", "Unsafe_Park")
LOCKS = "java.util.concurrent.locks"


@pytest.mark.parametrize(
    ("native", "methods", "wait"),
    [
        (
            ("pthread_cond_wait", "PlatformEvent::park()", "ObjectMonitor::EnterI(JavaThread*)"),
            ("com.acme.Till.charge", "com.acme.Till.serve"),
            ("monitor", "com.acme.Till.charge"),
        ),
        (
            PARKED,
            (
                "jdk.internal.misc.Unsafe.park",
                f"{LOCKS}.AbstractQueuedSynchronizer.acquire",
                f"{LOCKS}.ReentrantLock.lock",
                "com.acme.Till.charge",
            ),
            ("java lock", "com.acme.Till.charge"),
        ),
        (
            PARKED,
            (
                "jdk.internal.misc.Unsafe.park",
                f"{LOCKS}.AbstractQueuedSynchronizer$ConditionObject.await",
                "java.util.concurrent.ArrayBlockingQueue.take",
            ),
            ("condition", "Unsafe_Park"),
        ),
    ],
)
def test_locks_of_java_name_the_method_that_wants_them(native, methods, wait):
    modules = {name: LIBC if name.startswith("pthread") else JVM for name in native}
    stack = frames(*native, modules=modules)
    java = [Frame(name, 0, "[jit]", Address(0), "user") for name in methods]
    assert describe([*stack, *java]) == wait
