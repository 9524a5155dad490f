"""What PyInstaller does not see: modules that are imported by name, and the shipped BPF objects."""  # noqa: N999, INP001

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

hiddenimports = collect_submodules("purebpf")
datas = collect_data_files("purebpf")
