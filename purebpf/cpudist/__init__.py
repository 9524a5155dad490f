"""`python -m purebpf.cpudist`: see docs/cpudist.md."""
