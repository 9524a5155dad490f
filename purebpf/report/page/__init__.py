"""The page of report/html.py: a template, a style sheet and scripts, embedded as they are."""
