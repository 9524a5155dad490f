"""`purebpf dump`: see docs/dump.md. In programs: `purebpf.tools.dump.session.dump`."""
