"""The paper's protocol: its classifiers, trained as its appendix says."""

from __future__ import annotations

from dear_plugin.benchmark.classifiers import Recipe, accuracy, recipe, trained

__all__ = ["Recipe", "accuracy", "recipe", "trained"]
