"""Baselines: the rivals of the paper, each as its own paper defines it."""

from __future__ import annotations

from dear_plugin.baselines.cchvae import CCHVAE, Shells
from dear_plugin.baselines.clue import Clue
from dear_plugin.baselines.face import FaceEpsilon, FaceKNN
from dear_plugin.baselines.graph import Paths
from dear_plugin.baselines.latent import Descent
from dear_plugin.baselines.nearest import NearestAccepted
from dear_plugin.baselines.revise import Revise
from dear_plugin.baselines.vae import Vae, VaeDesign
from dear_plugin.baselines.wachter import Shrinkage, Wachter

__all__ = [
    "CCHVAE",
    "Clue",
    "Descent",
    "FaceEpsilon",
    "FaceKNN",
    "NearestAccepted",
    "Paths",
    "Revise",
    "Shells",
    "Shrinkage",
    "Vae",
    "VaeDesign",
    "Wachter",
]
