"""Commands that make the tables and figures of the documentation."""
