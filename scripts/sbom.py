"""Print the bill of materials of what purebpf ships, in CycloneDX 1.6.

    .venv/bin/python scripts/sbom.py >sbom.cdx.json

It has purebpf itself, the packages of requirements/run.txt with the hashes of their archives, and
the shipped BPF objects with theirs. It has no time and no serial number, so that the same tree
gives the same file.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, NamedTuple

from purebpf._version import __version__

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements/run.txt"
_PINNED = re.compile(r"^(\S+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


class Pinned(NamedTuple):
    """A package of the lock; `hashes` are those of its archives."""

    name: str
    version: str
    hashes: tuple[str, ...]


def pinned(text: str) -> list[Pinned]:
    """The packages of a requirements file.

    Raises:
        ValueError: a line that pins nothing by hash.
    """
    packages = [
        Pinned(name, version, tuple(re.findall(r"sha256:(\w+)", hashes)))
        for name, version, hashes in _PINNED.findall(text)
    ]
    if left := _PINNED.sub("", text).strip():
        raise ValueError(f"not pinned by hash: {left.splitlines()[0]}")
    return packages


def document() -> str:
    """The file's text."""
    packages = [_package(package) for package in pinned(LOCK.read_text())]
    main = _reference("purebpf", __version__)
    tree = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": main,
                "name": "purebpf",
                "version": __version__,
                "purl": main,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": [*packages, *_objects()],
        "dependencies": [{"ref": main, "dependsOn": [package["bom-ref"] for package in packages]}],
    }
    return json.dumps(tree, indent=2) + "\n"


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _package(package: Pinned) -> dict[str, Any]:
    reference = _reference(package.name, package.version)
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        "purl": reference,
        "licenses": [{"license": {"name": _license(package.name)}}],
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{package.name}/{package.version}/",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.hashes],
            }
        ],
    }


def _license(name: str) -> str:
    """As the package says; a whole text is cut to its first line."""
    about = metadata(name)
    named = [line for key in ("License-Expression", "License") for line in about.get_all(key) or ()]
    classes = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    return ", ".join([line.partition("\n")[0] for line in named] or classes) or "not stated"


def _objects() -> Iterator[dict[str, Any]]:
    for path in sorted((ROOT / "purebpf/objects").glob("*.spec")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        yield {
            "type": "file",
            "name": f"purebpf/objects/{path.name}",
            "hashes": [{"alg": "SHA-256", "content": content}],
        }


if __name__ == "__main__":
    sys.stdout.write(document())
