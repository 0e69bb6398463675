"""Problem: targets and constraints in, feasible sets of rows and sets of actions out."""
