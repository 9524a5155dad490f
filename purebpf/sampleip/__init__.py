"""Sampled addresses within ranges: `purebpf sampleip`, and as a library:

from purebpf.sampleip.request import Options
from purebpf.sampleip.session import Sampler

with Sampler(Options(symbols=("vfs_read",), counting=True)) as sampler:
work()
found = sampler.stop()      # a purebpf.sampleip.session.IpCounts
"""
