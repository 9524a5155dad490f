"""A statement for DuckDB as another engine takes it, by sqlglot. Pure.

The tree is corrected where sqlglot is wrong: sums of 64 bits do not fit 64 bits, subqueries need
names, microseconds have another function in each engine.
"""

from __future__ import annotations

from itertools import count

import sqlglot
from sqlglot import exp

from purebpf.services.fleet.duck import QueryError

__all__ = ["translate"]

_MICROSECONDS = {"clickhouse": "toUnixTimestamp64Micro", "spark": "unix_micros"}


def translate(statement: str, dialect: str) -> str:
    """The statement for `clickhouse` or `spark`.

    Raises:
        QueryError: it is not one statement of DuckDB's SQL that reads.
    """
    try:
        tree = sqlglot.parse_one(statement, read="duckdb")
    except sqlglot.ParseError as error:
        raise QueryError(str(error).splitlines()[0]) from None
    if not isinstance(tree, exp.Query):
        raise QueryError("one statement that begins with select (or with) is needed")
    numbers = count()
    for node in reversed(list(tree.walk())):  # from the leaves, since nodes are copied
        if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join):
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(f"part{next(numbers)}")))
        elif isinstance(node, exp.Sum):
            node.set("this", exp.cast(node.this.copy(), "decimal(38, 0)"))
        elif isinstance(node, exp.Anonymous) and node.name.lower() == "epoch_us":
            node.set("this", _MICROSECONDS[dialect])
        elif isinstance(node, exp.CTE):
            node.set("materialized", None)
        elif isinstance(node, exp.IntDiv) and dialect == "clickhouse":
            node.replace(exp.func("intDiv", node.this.copy(), node.expression.copy()))
    return str(tree.sql(dialect=dialect))
