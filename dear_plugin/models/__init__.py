"""Models: a torch module or a black box in, scores of rows out."""
