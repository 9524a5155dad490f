"""The structs and members that sampled code touches: `purebpf types`, and as a library:

from purebpf.tools.types.request import TypesOptions
from purebpf.tools.types.session import TypeSampler

with TypeSampler(TypesOptions(pids=(4242,))) as sampler:
    work()
    found = sampler.stop()      # a purebpf.tools.types.result.DataTypes
"""
