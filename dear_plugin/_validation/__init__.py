"""Validation: option values and saved tensors in, the same out, or one clear error."""
