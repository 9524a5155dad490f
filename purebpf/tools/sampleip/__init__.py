"""Sampled addresses within ranges: `purebpf sampleip`, and as a library:

from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.tools.sampleip.session import Sampler

with Sampler(SampleIpOptions(symbols=("vfs_read",), counting=True)) as sampler:
    work()
    found = sampler.stop()      # a purebpf.tools.sampleip.session.IpCounts
"""
