"""Demo: recourse for rejected rows by the engine, DiCE and Alibi."""

from __future__ import annotations

from dear_plugin.demo.experiment import Demo
from dear_plugin.demo.show import run

__all__ = ["Demo", "run"]
