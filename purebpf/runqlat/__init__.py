"""`python -m purebpf.runqlat`: see docs/runqlat.md."""
