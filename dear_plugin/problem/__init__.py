"""Problem: targets and constraints in; goals, feasible sets and action sets of rows out."""
