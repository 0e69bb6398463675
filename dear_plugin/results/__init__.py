"""Results: question and proposal as records; answers as frames, texts, letters and HTML."""
