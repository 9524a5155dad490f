"""The parts that PyInstaller misses: modules imported by name, and the shipped BPF objects."""  # noqa: N999, INP001

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

# `purebpf.testing` is for tests: it would bring pytest into the program.
hiddenimports = collect_submodules("purebpf", lambda name: not name.startswith("purebpf.testing"))
datas = collect_data_files("purebpf")
