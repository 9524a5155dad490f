"""Drives the BPF programs that purebpf ships."""
