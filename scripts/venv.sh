# Sourced by the other scripts: makes .venv with purebpf and the extras named in $extras, once.
# Needs only sh and Python 3.11 or newer; leaves the interpreter's path in $python.
# In CI ($CI is set), every package is the one that requirements/ci.txt names, by hash.

python3=${PYTHON:-python3}
if ! "$python3" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "purebpf needs Python 3.11 or newer; '$python3' is not. Set PYTHON to one that is." >&2
    exit 1
fi
python=$PWD/.venv/bin/python
if [ ! -x "$python" ] && ! "$python3" -m venv .venv >/dev/null 2>&1; then
    # Debian's python3 keeps venv in a package of its own
    rm -rf .venv
    version=$("$python3" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "python$version-venv" >/dev/null
    fi
    "$python3" -m venv .venv || exit 1
fi
stamp=.venv/installed${extras-}
if [ ! -e "$stamp" ] || [ setup.cfg -nt "$stamp" ] ||
    { [ -n "${CI-}" ] && [ requirements/ci.txt -nt "$stamp" ]; }; then
    if [ -n "${CI-}" ]; then
        "$python" -m pip install --quiet --disable-pip-version-check --require-hashes \
            -r requirements/ci.txt || exit 1
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
            --no-build-isolation --config-settings editable_mode=compat -e . || exit 1
    else
        "$python" -m pip install --quiet --disable-pip-version-check \
            --config-settings editable_mode=compat -e ".${extras-}" || exit 1
    fi
    touch "$stamp"
fi
# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each command of a checkout would
# compile its modules anew: a third of a second of CPU at every start.
compile_modules() {
    "$python" -m compileall -q purebpf
}
