"""Filters for users who may not load programs: `python -m purebpf.setup pin --user ann`."""
