"""What is measured of counterfactuals and of decoders."""
