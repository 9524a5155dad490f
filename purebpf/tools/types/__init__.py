"""The structs and members that sampled code touches: `purebpf types`, and as a library:

from purebpf.tools.types.request import Options
from purebpf.tools.types.session import TypeSampler

with TypeSampler(Options(pids=(4242,))) as sampler:
work()
found = sampler.stop()      # a purebpf.tools.types.result.DataTypes
"""
