"""The paper's own: Algorithm 1 to the letter."""
