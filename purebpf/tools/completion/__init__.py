"""`purebpf completion`: what bash, zsh and fish need to complete the command line."""
