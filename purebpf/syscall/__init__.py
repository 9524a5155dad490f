"""The kernel edge: one plain function per call. No retries, no fallbacks; those are policy."""
