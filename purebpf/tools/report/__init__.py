"""The stacks of a perf.data file, with names: `purebpf report`."""
