"""What a call asks: goals, feasible sets and action sets of its rows."""
