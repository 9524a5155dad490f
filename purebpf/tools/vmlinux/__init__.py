"""The command that writes a `vmlinux.h`: `purebpf.build.make_vmlinux` is the library."""
