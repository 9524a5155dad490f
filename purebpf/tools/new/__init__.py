"""The command that begins a tool: a folder with C, Python, stubs, a test and a pyproject.toml."""
