"""Code generation: from checked blocks to BPF instructions."""
