"""`purebpf triage`: the whole machine in one screen."""
