"""Engines that answer in DuckDB's place, with the same statements."""
