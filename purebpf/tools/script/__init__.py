"""The command that runs scripts in bpftrace's language."""
