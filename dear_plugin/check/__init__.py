"""`diagnose`: how well the decoder's indirect changes agree with held-out rows."""
