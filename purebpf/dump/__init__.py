"""`purebpf dump`: see docs/dump.md. In programs: `purebpf.dump.session.dump`."""
