"""Texts of answers: letters, cards, records, advice, schema files, and the commands.

All of it is made from a result's `actions` and `changes`, and from its schema.
"""
