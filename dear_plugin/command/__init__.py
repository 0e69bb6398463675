"""Command: what `dear-plugin schema` and `dear-plugin letters` do with files."""

from __future__ import annotations

from dear_plugin.command.letters import Letters, write_letters
from dear_plugin.command.models import model_of
from dear_plugin.command.schema import SchemaFile, write_schema

__all__ = ["Letters", "SchemaFile", "model_of", "write_letters", "write_schema"]
