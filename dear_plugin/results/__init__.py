"""What a call answers: frames, and the text of each answer for an analyst."""
