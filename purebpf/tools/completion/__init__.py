"""`purebpf completion`: completion scripts for bash, zsh and fish."""
