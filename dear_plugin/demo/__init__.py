"""The demo: answers for rejected rows in Python, DiCE and Alibi, and the page."""

from __future__ import annotations

from dear_plugin.demo.experiment import Demo
from dear_plugin.demo.explore import Explore, explore
from dear_plugin.demo.show import run

__all__ = ["Demo", "Explore", "explore", "run"]
