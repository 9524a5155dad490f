"""For tests of BPF tools: a plugin of pytest, which pytest finds, and the packets that it gives.

Nothing here is imported by the library, and pytest is not one of its requirements.
"""
