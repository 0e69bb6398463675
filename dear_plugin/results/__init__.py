"""Results: a question and what is proposed in; frames of answers and actions, and texts, out."""
