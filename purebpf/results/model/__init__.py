"""The model of results: stacks with weights and labels, and what a measurement lost."""
