"""What a call answers: frames, texts, letters and HTML."""
