"""Evaluation: costs, support and plausibility of counterfactuals; diagnostics of decoders."""
