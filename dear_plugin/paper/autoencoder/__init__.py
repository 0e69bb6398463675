"""The paper's decoder, one network for each action set."""
