"""The facts of the training rows that answers are compared with."""
