"""`python -m purebpf.report`: perf.data files as stacks with names.

The room of profiles and their formats is `purebpf.report`; this is the command. As a library:

    from purebpf.reporter.options import Options
    from purebpf.reporter.session import read

    profile = read(Options(path="perf.data")).profile      # a purebpf.report.Profile
"""
