"""Benchmark: the experiment of the paper and comparisons with the hosts; its classifiers."""

from __future__ import annotations

from dear_plugin.benchmark.classifiers import Recipe, accuracy, recipe, trained

__all__ = ["Recipe", "accuracy", "recipe", "trained"]
