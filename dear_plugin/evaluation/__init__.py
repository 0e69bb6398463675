"""Evaluation: rows and decoders in, measures of answers and of decoders out."""
