"""From addresses to names: ELF, kallsyms, mappings, perf maps. Pure."""
