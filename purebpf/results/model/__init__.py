"""The model of results: stacks with weights and labels, and the losses of a measurement."""
