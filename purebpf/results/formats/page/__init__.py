"""The page of `results/formats/html.py`: a template, a style sheet and scripts to embed."""
