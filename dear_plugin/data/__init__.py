"""Data: schema inference, and the encoder between user frames and rows, (n, p) tensors."""
