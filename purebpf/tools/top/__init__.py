"""`purebpf top`: what the CPUs do now, in a terminal."""
