"""`purebpf convert`: a saved profile in other formats."""
