"""What the terminal says about user stacks: how they were walked, and why so."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["describe"]

_WAYS = {
    "tables": "walked by tables",
    "copy": "unwound from copies",
    "fp": "walked by frame pointers",
}


def describe(about: Mapping[str, object]) -> str:
    """One line, from the facts about a run; "" where there are no user stacks."""
    mode, why = about.get("call_graph"), about.get("call_graph_why")
    if mode is None:
        return ""
    return f"user stacks: {_WAYS[str(mode)]}" + (f"; not by tables: {why}" if why else "")
