"""Filters for users who may not load programs: `purebpf setup pin --user ann`."""
