"""Benchmark: the tables and figures of the documentation, by command."""
