"""Scores of rows by a torch module or a black box."""
