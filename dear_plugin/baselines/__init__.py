"""Baselines: the rivals of the paper, each as its own paper defines it."""

from __future__ import annotations

from dear_plugin.baselines.face import FaceEpsilon, FaceKNN
from dear_plugin.baselines.nearest import NearestAccepted
from dear_plugin.baselines.wachter import Shrinkage, Wachter

__all__ = ["FaceEpsilon", "FaceKNN", "NearestAccepted", "Shrinkage", "Wachter"]
