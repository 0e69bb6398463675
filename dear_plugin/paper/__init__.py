"""The paper's own decoder, Algorithm 1 to the letter, Jacobians and closed forms."""

from __future__ import annotations

from dear_plugin.paper.autoencoder.decoder import Autoencoder
from dear_plugin.paper.autoencoder.design import PAPER_LAYERS, Design
from dear_plugin.paper.autoencoder.training import History, Training

__all__ = ["PAPER_LAYERS", "Autoencoder", "Design", "History", "Training"]
