"""Reads the records that BPF programs send through ring buffers and perf buffers."""
