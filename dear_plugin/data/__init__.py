"""Data: frames in, rows of numbers out, and back again, by a schema of features."""
