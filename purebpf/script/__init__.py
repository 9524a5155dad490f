"""The script language: from the text of a script, as bpftrace understands it, to BPF programs."""
