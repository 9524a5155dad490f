"""`purebpf completion`: the scripts by which bash, zsh and fish complete the command line."""
