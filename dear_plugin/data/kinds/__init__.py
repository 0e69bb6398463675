"""Kinds: each kind of column is a subclass of `Feature` in one file, with `Column`'s methods.

number: amounts, with their decimals and codes. labels: of which two are one encoded column.
cyclic: labels in a circle. levels: labels with an order, which are numbers to all but cells and
texts. dummies: labels whose cells are spread over several columns.
"""
