"""Demo: refused people get recourse, through the engine, through DiCE and through Alibi."""

from __future__ import annotations

from dear_plugin.demo.show import run
from dear_plugin.demo.stage import Demo

__all__ = ["Demo", "run"]
