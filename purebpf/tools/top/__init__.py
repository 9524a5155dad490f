"""`purebpf top`: the present work of the CPUs, in a terminal."""
