"""Baselines: the methods that the paper compares DEAR with, each as its own paper defines it."""

from __future__ import annotations

from dear_plugin.baselines.cchvae import CCHVAE, CCHVAEConfig
from dear_plugin.baselines.clue import Clue
from dear_plugin.baselines.face import FaceConfig, FaceEpsilon, FaceKNN
from dear_plugin.baselines.growing_spheres import GrowingSpheres, GrowingSpheresConfig
from dear_plugin.baselines.latent import LatentConfig
from dear_plugin.baselines.nearest import NearestAccepted
from dear_plugin.baselines.revise import Revise
from dear_plugin.baselines.roar import Roar, RoarConfig
from dear_plugin.baselines.vae import Vae, VaeDesign
from dear_plugin.baselines.wachter import Wachter, WachterConfig

__all__ = [
    "CCHVAE",
    "CCHVAEConfig",
    "Clue",
    "FaceConfig",
    "FaceEpsilon",
    "FaceKNN",
    "GrowingSpheres",
    "GrowingSpheresConfig",
    "LatentConfig",
    "NearestAccepted",
    "Revise",
    "Roar",
    "RoarConfig",
    "Vae",
    "VaeDesign",
    "Wachter",
    "WachterConfig",
]
