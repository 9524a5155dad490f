"""`purebpf cpudist`: see docs/cpudist.md."""
