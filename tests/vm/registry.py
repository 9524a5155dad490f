"""Debian's package registry: packages by name, unpacked into a folder, not installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["CACHE", "Registry"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "purebpf" / "kernels"

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Registry:
    """apt-get, with a source list of our own for suites or an architecture that are not ours.

    Args:
        suites: those to look in; none means the suites that this machine's apt knows.
        architecture: as Debian calls it; "" means this machine's.
    """

    def __init__(self, suites: tuple[str, ...] = (), architecture: str = "") -> None:
        self._options: list[str] = []
        if suites:
            self._own_lists(suites, architecture)

    def _own_lists(self, suites: tuple[str, ...], architecture: str) -> None:
        home = CACHE / "apt" / "-".join((*suites, architecture)).rstrip("-")
        (home / "lists/partial").mkdir(parents=True, exist_ok=True)
        (home / "archives/partial").mkdir(parents=True, exist_ok=True)
        (home / "sources.list").write_text(
            "".join(
                f"deb [signed-by={_KEYS}] {_mirror(security=suite.endswith('-security'))} "
                f"{suite} main\n"
                for suite in suites
            )
        )
        settings = {
            "Dir::Etc::sourcelist": home / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::Lists": home / "lists",
            "Dir::Cache": home,
            "Acquire::Languages": "none",
        }
        if architecture:
            # what is installed here says nothing about what depends on what there
            settings |= {
                "APT::Architecture": architecture,
                "APT::Architectures": architecture,
                "Dir::State::status": "/dev/null",
            }
        for name, value in settings.items():
            self._options += ["-o", f"{name}={value}"]

    def update(self) -> None:
        """Fetch the lists.

        Raises:
            RuntimeError: there is no apt-get, or it reaches no registry.
        """
        self._get("-qq", "--error-on=any", "update")

    def newest(self, pattern: str) -> str | None:
        """The name of the newest package with a name that matches, in the lists as they are."""
        return max(self.names("linux-image-", pattern), key=by_version, default=None)

    def names(self, start: str, pattern: str) -> list[str]:
        """The names of packages that begin with `start` and match, and can be had."""
        names = self._ask("pkgnames", start).split()
        found = [name for name in names if re.fullmatch(pattern, name)]
        return [name for name in found if self._offered(name)]

    def _offered(self, name: str) -> bool:
        policy = self._ask("policy", name)
        return "Candidate:" in policy and "Candidate: (none)" not in policy

    def unpack(self, packages: list[str], folder: Path) -> None:
        """Unpack packages into `folder`; a half-done one is never seen there.

        Raises:
            RuntimeError: apt-get cannot bring them.
        """
        part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        archives = part / "archives"
        archives.mkdir(parents=True)
        try:
            self._get("-qq", "download", *packages, cwd=archives)
            for archive in archives.glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", archive, part], check=True)
            shutil.rmtree(archives)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def halves(self, package: str) -> list[str]:
        """The packages that hold kernel and modules, where Debian split them off (7.x)."""
        depends = self._ask("depends", package)
        return re.findall(r"Depends: (linux-(?:base|binary|modules)-\d\S*)", depends)

    def _get(self, *arguments: str, cwd: Path | None = None) -> None:
        command = ["apt-get", *self._options, "-o", "APT::Sandbox::User=root", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
        except FileNotFoundError:
            raise RuntimeError("there is no apt-get here to fetch Debian's kernels with") from None
        if done.returncode:
            raise RuntimeError(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip()}")

    def _ask(self, *arguments: str) -> str:
        command = ["apt-cache", *self._options, *arguments]
        environment = os.environ | {"LC_ALL": "C"}
        try:
            return subprocess.run(
                command, check=True, capture_output=True, text=True, env=environment
            ).stdout
        except FileNotFoundError:
            return ""
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{' '.join(command)} failed: {error.stderr.strip()}") from error


def by_version(package: str) -> list[int]:
    """What sorts package names by the numbers in them."""
    return [int(part) for part in re.findall(r"\d+", package)]


def _mirror(*, security: bool) -> str:
    """The archive that this machine's apt is configured with."""
    texts = [
        path.read_text()
        for pattern in ("sources.list", "sources.list.d/*.list", "sources.list.d/*.sources")
        for path in Path("/etc/apt").glob(pattern)
    ]
    found = re.findall(
        r"(?:^URIs:\s*|^deb\s+(?:\[[^]]*\]\s*)?)(\S+)", "\n".join(texts), re.MULTILINE
    )
    for mirror in found:
        if "debian" in mirror and mirror.rstrip("/").endswith("-security") == security:
            return str(mirror)
    raise RuntimeError("no Debian archive found in /etc/apt")
