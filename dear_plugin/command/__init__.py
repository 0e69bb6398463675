"""What `dear-plugin schema` and `dear-plugin letters` do with files."""

from __future__ import annotations

from dear_plugin.command.files import SchemaFile, model_of, write_schema
from dear_plugin.command.letters import Letters, write_letters

__all__ = ["Letters", "SchemaFile", "model_of", "write_letters", "write_schema"]
