"""`purebpf diff`: what changed between two saved profiles."""
