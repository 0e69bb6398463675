"""The version, in a room of its own so that every other one can read it."""

__version__ = "0.1.0"
