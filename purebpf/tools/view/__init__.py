"""`purebpf view`: a page over a folder of saved profiles."""
