"""Autoencoder, the paper's decoder: training rows in, one network for each action set out."""
