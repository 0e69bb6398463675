"""Scores of rows from a torch module or a black box."""
