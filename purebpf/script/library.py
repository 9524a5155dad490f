"""`compile_script` for programs: a script as an object, without a kernel."""

from __future__ import annotations

from purebpf.script.compilation import compile_script as compile_whole
from purebpf.script.host import Host, NoHost
from purebpf.script.settings import Settings
from purebpf.spec import ObjectSpec

__all__ = ["compile_script"]


def compile_script(text: str, *parameters: object, host: Host | None = None) -> ObjectSpec:
    """Compile a script in bpftrace's language, without a kernel and without root.

    Args:
        text: the script.
        parameters: `$1` and so on.
        host: the machine that the script will run on; by default one that has no types and no
            attach points, for scripts that need none. Without it, scripts that read count() and
            the like add up the first 1,024 CPUs.

    Raises:
        ScriptError: the script is wrong, or uses a part of the language that is not supported.
    """
    settings = Settings(tuple(map(str, parameters)))
    return compile_whole(text, host or NoHost(), settings).spec
