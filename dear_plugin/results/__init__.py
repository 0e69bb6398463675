"""The result of a call: frames, the lines of each answer, and what a letter may state of it."""
