"""The commands that make the tables and figures of the documentation."""
