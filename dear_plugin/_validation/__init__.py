"""Validation: checks of option values and of saved tensors."""
