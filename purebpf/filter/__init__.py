"""The language of sample filters: `cpu == 1 || pid == 2, ip < 0xffffffff00000000`.

    parsed = parse("period > 1000, comm == mysqld")    # Filter, or FilterError with a caret
    check(parsed, sample_type)                         # FilterError names the missing option
    terms = resolve(parsed, sample_type, names)        # users, cgroups and functions looked up
    code = compile_terms(terms, access, counters)      # BPF; or `predicate(terms)` without a kernel

Pure: facts about the machine (its types, its users, its functions) come in as arguments;
`purebpf.observe.filters.sample_filter` combines both. docs/filter.md describes the language.
"""

from purebpf.filter.check import Need, check, check_event, needs
from purebpf.filter.parser import parse
from purebpf.filter.syntax import Filter, FilterError

__all__ = ["Filter", "FilterError", "Need", "check", "check_event", "needs", "parse"]
