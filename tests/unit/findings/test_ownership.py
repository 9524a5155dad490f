"""Own functions of programs in several languages."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import StackFrame
from purebpf.findings.ownership import Program, short_name, spell_function

GO, CPP, PYTHON, JAVA, RUBY = (
    Program("/srv/spooler", is_go=True),
    Program("/srv/quoted"),
    Program("/usr/bin/python3"),
    Program("/usr/lib/jvm/jdk/bin/java"),
    Program("/usr/bin/ruby3.1"),
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
        (RUBY, StackFrame("block in pay", "/srv/shop/shop.rb", 3), True),
        (RUBY, StackFrame("pay", "/srv/shop/shop.rb", 3, "ruby"), True),
        (RUBY, StackFrame("<main>", "/srv/shop/shop.rb", 3), False),
        (RUBY, StackFrame("call", "/var/lib/gems/3.1.0/gems/rack-3.0/lib/rack/head.rb", 3), False),
        (RUBY, StackFrame("loop", "<internal:kernel>", 3), False),
        (RUBY, StackFrame("synchronize", "built-in", 0), False),
        (RUBY, StackFrame("rb_nogvl", "/usr/lib/libruby-3.1.so.3.1.2", 0), False),
        (PYTHON, StackFrame("_PyEval_EvalFrameDefault", "/usr/bin/python3", 0), False),
        (CPP, StackFrame("Cache::lookup(int)", "/srv/quoted"), True),
        (CPP, StackFrame("std::mutex::lock()", "/srv/quoted"), False),
        (CPP, StackFrame("camlLedger__add_event_271", "/srv/quoted"), True),
        (CPP, StackFrame("camlStdlib__$40_197", "/srv/quoted"), False),
        (CPP, StackFrame("caml_alloc_small_dispatch", "/srv/quoted"), False),
        (CPP, StackFrame("camlStdlib_shop__price_9", "/srv/quoted"), True),
        (CPP, StackFrame("void std::sort<int*>(int*, int*)", "/srv/quoted"), False),
        (CPP, StackFrame("Mailer::deliver(std::map<int, std::less<int> >)", "/srv/quoted"), True),
        (CPP, StackFrame("Cache<int, std::less<int> >::lookup(int)", "/srv/quoted"), True),
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
        (CPP, StackFrame("__clock_nanosleep", "/srv/quoted"), False),
        (CPP, StackFrame("__libc_read", "/srv/quoted"), False),
        (CPP, StackFrame("libc_start_main_stage2", "/srv/quoted"), False),
        (CPP, StackFrame("sccp", "/srv/quoted"), False),
        (CPP, StackFrame("__sin_fma", "/srv/quoted"), False),
        (CPP, StackFrame("read_orders", "/srv/quoted"), True),
        (CPP, StackFrame("open_session", "/srv/quoted"), True),
        (CPP, StackFrame("Feed::poll", "/srv/quoted"), True),
        (CPP, StackFrame("<shop::Row as core::fmt::Display>::fmt", "/srv/quoted"), True),
        (CPP, StackFrame("<T as core::convert::Into<U>>::into", "/srv/quoted"), False),
        (CPP, StackFrame("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "/srv/quoted"), False),
        (CPP, StackFrame("hashbrown::map::HashMap<K,V>::insert", "/srv/quoted"), False),
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
        ("void Worker::run<int>(int)", "Worker::run"),
        ("Worker::operator()() const", "Worker::operator()"),
        ("std::map<int, double>::operator[](int const&)", "map::operator"),
        ("main.(*Pool[go.shape.string_0]).Submit", "main.(*Pool).Submit"),
        ("github.com/acme/shop/db.(*Conn).Query", "db.(*Conn).Query"),
        ("github.com/acme/shop/db.open", "db.open"),
        ("main.Map[go.shape.int_0,go.shape.[]string_1]", "main.Map"),
        ("<catalog::Catalog>::render", "Catalog::render"),
        ("<shop::Row as core::fmt::Display>::fmt", "Row::fmt"),
        ("ask_tax.constprop.0", "ask_tax"),
        ("Foo::bar(int) [clone .isra.0]", "Foo::bar"),
        ("camlShop__Cart__add_item_270", "Shop.Cart.add_item"),
        ("camlShop.Cart.add_item_270", "Shop.Cart.add_item"),
        ("camlStdlib__$40_197", "Stdlib.@"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("(anonymous namespace)::work()", "work"),
        ("shop::(anonymous namespace)::work(int)", "shop::work"),
        ("shop::db::Cache::get(std::string const&)", "shop::db::Cache::get"),
        ("main.(*inventory).lookup", "main.(*inventory).lookup"),
        ("main.(*inventory).lookup.func1", "main.(*inventory).lookup.func1"),
        ("main.main.func1", "main.main.func1"),
        ("store::Store::save", "store::Store::save"),
        ("main.cold", "main.cold"),
        ("camlLedger__add_event_271", "Ledger.add_event"),
    ],
)
def test_functions_in_a_sentence(name: str, spelled: str) -> None:
    assert spell_function(name) == spelled
