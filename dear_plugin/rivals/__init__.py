"""The methods that the paper compares DEAR with, implemented by their papers, and `compare`."""

from __future__ import annotations

from dear_plugin.rivals.comparison import Comparison, compare
from dear_plugin.rivals.face import FaceConfig, FaceEpsilon, FaceKNN
from dear_plugin.rivals.growing_spheres import GrowingSpheres, GrowingSpheresConfig
from dear_plugin.rivals.latent import CCHVAE, CCHVAEConfig, Clue, LatentConfig, Revise
from dear_plugin.rivals.nearest import NearestAccepted
from dear_plugin.rivals.roar import Roar, RoarConfig
from dear_plugin.rivals.vae import Vae, VaeDesign
from dear_plugin.rivals.vetted import Vetted
from dear_plugin.rivals.wachter import Wachter, WachterConfig
from dear_plugin.rivals.wrapped import Wrapped

__all__ = [
    "CCHVAE",
    "CCHVAEConfig",
    "Clue",
    "Comparison",
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
    "Vetted",
    "Wachter",
    "WachterConfig",
    "Wrapped",
    "compare",
]
