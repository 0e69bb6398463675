"""Fitted: an optimizer of some sets, for tests of the search."""

from dear_plugin.decoders import Decoders, Sample
from dear_plugin.methods.optimizer import Optimizer


def fitted_optimizer(rows, sets, decoder, classifier):
    """The optimizer of sets with decoders of training rows, (n, p)."""
    decoders = Decoders(decoder, Sample(rows, classifier.encoder), sets.members)
    decoders.fit(sets.members)
    return Optimizer.of(sets, decoders, classifier)
