"""Shapes a profile for readers: functions, tables, differences, histograms, source lines."""
