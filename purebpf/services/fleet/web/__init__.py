"""`purebpf fleet serve`: a store's questions and answers as pages."""
