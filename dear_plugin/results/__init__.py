"""Results: proposals in, counterfactuals and actions as frames and in words out."""
