"""Texts of answers: descriptions, letters, cards, records, advice, schema files, the commands.

All of it is made from what a result holds, and from its schema.
"""
