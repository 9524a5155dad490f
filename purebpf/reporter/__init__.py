"""`python -m purebpf.report`: perf.data files as stacks with names.

The room of profiles and their formats is `purebpf.report`; this is the command. As a library:

    from purebpf.cli.recorded import read

    profile = read("perf.data").profile      # a purebpf.report.Profile
"""
