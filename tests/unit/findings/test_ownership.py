"""Own functions of programs in several languages."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import StackFrame
from purebpf.findings.ownership import Program, short_name

GO, CPP, PYTHON, JAVA = (
    Program("/srv/spooler", is_go=True),
    Program("/srv/quoted"),
    Program("/usr/bin/python3"),
    Program("/usr/lib/jvm/jdk/bin/java"),
)


@pytest.mark.parametrize(
    ("program", "frame", "is_own"),
    [
        (PYTHON, StackFrame("view", "/srv/app.py", 3, "python"), True),
        (
            PYTHON,
            StackFrame("Flask.run", "/v/lib/python3.11/site-packages/flask/app.py", 3, "python"),
            False,
        ),
        (PYTHON, StackFrame("loads", "/usr/lib/python3.11/json/__init__.py", 3, "python"), False),
        (PYTHON, StackFrame("_call", "<frozen importlib._bootstrap>", 3, "python"), False),
        (PYTHON, StackFrame("_PyEval_EvalFrameDefault", "/usr/bin/python3", 0), False),
        (CPP, StackFrame("Cache::lookup(int)", "/srv/quoted"), True),
        (CPP, StackFrame("std::mutex::lock()", "/srv/quoted"), False),
        (CPP, StackFrame("deflate", "/usr/lib/x86_64-linux-gnu/libz.so.1"), False),
        (CPP, StackFrame("plugin_run", "/opt/shop/libplugin.so"), True),
        (JAVA, StackFrame("com.acme.Till.charge", "[jit]", 7), True),
        (JAVA, StackFrame("Till.charge", "[jit]"), True),
        (JAVA, StackFrame("Till.charge", "Till.java", 7, "java"), True),
        (JAVA, StackFrame("java.lang.Object.wait", "Object.java", 338, "java"), False),
        (JAVA, StackFrame("jdk.internal.misc.Unsafe.park", "[jit]"), False),
        (JAVA, StackFrame("Till$$Lambda.run", "[jit]"), False),
        (JAVA, StackFrame("LazyCompile:~run /srv/a.js:1:2", "[jit]"), False),
        (JAVA, StackFrame("JavaCalls::call_helper", "/opt/jdk/lib/libjvm.so"), False),
        (CPP, StackFrame("quoted!0x1230", "/srv/quoted"), False),
        (GO, StackFrame("main.storeJob", "/srv/spooler"), True),
        (GO, StackFrame("github.com/me/shop.Serve", "/srv/spooler"), True),
        (GO, StackFrame("net/http.(*conn).serve", "/srv/spooler"), False),
        (GO, StackFrame("runtime.mallocgc", "/srv/spooler"), False),
    ],
)
def test_own_functions(program: Program, frame: StackFrame, is_own: bool) -> None:
    assert program.owns(frame) is is_own


def test_libraries_of_java_call_and_the_start_of_a_thread_does_not() -> None:
    named = ["java.util.concurrent.FutureTask.run", "java.lang.Thread.run", "com.acme.Till.charge"]
    frames = [StackFrame(name, "[jit]") for name in named]
    assert [JAVA.is_library(frame) for frame in frames] == [True, False, False]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("shop::Cache<int, std::less<int> >::lookup(int) const", "Cache::lookup"),
        ("main::{lambda()#1}::operator()() const", "a lambda in main()"),
        ("work", "work"),
        ("(anonymous namespace)::Pool::run()", "Pool::run"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short
