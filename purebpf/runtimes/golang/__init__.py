"""Goroutines of Go programs, from outside: the stacks of those that no thread runs. Pure."""
