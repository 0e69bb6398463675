"""The result of a call: frames, and the text of each answer for an analyst."""
