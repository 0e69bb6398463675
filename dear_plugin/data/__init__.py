"""Columns, schemas, and the encoder between user frames and rows, (n, p) tensors."""
