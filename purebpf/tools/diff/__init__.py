"""`purebpf diff`: the changes between two saved profiles."""
