"""The measures of answers that depend on training rows."""
