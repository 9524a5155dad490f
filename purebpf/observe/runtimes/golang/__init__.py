"""Goroutines of live Go programs."""
