"""Print the provenance of a release: an in-toto statement with SLSA's predicate, version 1.

python scripts/release/provenance.py FOLDER WHEELS

It names the SHA-256 of each file of the folder, the commit that they were built from, and the
packages that built them. It has no time and no name of a machine, so that whoever builds the commit
again gets the same text.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["main", "statement"]


def statement(commit: str, epoch: int, files: Path, wheels: Path) -> dict[str, Any]:
    """Return the statement.

    Args:
        commit: 40 hex digits.
        epoch: the time of the commit, in seconds since 1970.
        files: the folder of the release.
        wheels: the folder with the packages that the build installed.
    """
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": list(_digests(files, "*")),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:purebpf:release:1",
                "externalParameters": {"commit": commit, "SOURCE_DATE_EPOCH": epoch},
                "resolvedDependencies": [
                    {"name": "purebpf", "digest": {"gitCommit": commit}},
                    *_digests(wheels, "*.whl"),
                ],
            },
            "runDetails": {"builder": {"id": "urn:purebpf:scripts/release/release.sh"}},
        },
    }


def _digests(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        yield {
            "name": path.name,
            "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
        }


def main(files: str, wheels: str) -> None:
    """Print the statement about the commit that is checked out."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    print(json.dumps(statement(commit, epoch, Path(files), Path(wheels)), indent=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
