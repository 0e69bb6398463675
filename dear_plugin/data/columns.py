"""Columns: what the columns of the user's frame can hold; new rows into a copy of it."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.feature import Feature
from dear_plugin.data.grid import Grid
from dear_plugin.data.kinds.cells import Array, ends_of, plain_dtype
from dear_plugin.data.schema import Schema
from dear_plugin.errors import InputError

logger = logging.getLogger(__name__)


def column_limits(schema: Schema, frame: pd.DataFrame) -> tuple[Tensor, Tensor, Grid]:
    """(p,) the least and greatest value of each feature that the columns of a frame can hold.

    With the decimals of these columns. A dtype that cannot hold all observed values is logged.
    """
    held = [ends_of(plain_dtype(frame[f.name].dtype)) for f in schema.columns]
    both = zip(schema.columns, held, strict=True)
    if narrow := [f.name for f, (a, b) in both if f.bounds[0] < a or b < f.bounds[1]]:
        logger.warning(
            "columns %s have dtypes too narrow for all observed values: candidates are limited to"
            " values that they can hold",
            narrow,
        )
    own = (f.range_in(frame[f.members[0].name].dtype) for f in schema)
    low, high, places = zip(*own, strict=True)
    codes, steps = zip(*((f.codes, f.action_step) for f in schema), strict=True)
    grid, ends = Grid.of(places, codes, steps), torch.tensor([low, high], dtype=torch.float64)
    return *grid.inward(*ends), grid


def patch(
    encoder: Encoder,
    frame: pd.DataFrame,
    x: Tensor,
    *,
    rows: Tensor,
) -> tuple[pd.DataFrame, Tensor]:
    """A copy of a frame with new rows written to it, and these rows as read back from it.

    Only changed cells are written. They are read back since a column's dtype may round them,
    except labels in object columns.

    Args:
        encoder: the encoder of the rows.
        frame: the n factual rows in user units.
        x: (n, p) the factual rows.
        rows: (n, p) the counterfactual rows.
    """
    out, read, own, new = frame.copy(), x.cpu().numpy().copy(), x.cpu().numpy(), rows.cpu().numpy()
    accepted, plain, changed = np.ones(len(x), dtype=bool), _is_plain_frame(frame), own != new
    for j in np.flatnonzero(changed.any(0)).tolist():
        feature, at = encoder.features[j], np.flatnonzero(changed[:, j])
        _write(out, feature, at, before=own[at, j], after=new[at, j])
        column = out[feature.members[0].name]
        if plain and feature.categories and column.dtype == object:
            read[at, j] = new[at, j]
            continue
        reading = feature.read_frame(out, accepted)
        if reading.complaint and reading.reasons is None:
            raise InputError(reading.complaint)
        # Cells that cannot be read are of rows that are not changed.
        read[:, j] = reading.values
    still = ~changed.any(1)
    read[still] = own[still]
    return out, torch.from_numpy(read)


def _write(
    frame: pd.DataFrame, feature: Feature, at: Array, *, before: Array, after: Array
) -> None:
    """Write the values of a feature, (m,), at positions, (m,), of its columns of a frame."""
    pairs = zip(feature.spread(before).T, feature.spread(after).T, strict=True)
    for member, (own, new) in zip(feature.members, pairs, strict=True):
        differs = own != new
        cells = member.cells_in(new[differs], frame[member.name].dtype)
        _overwrite(frame, member.name, at[differs], cells)


def _is_plain_frame(frame: pd.DataFrame) -> bool:
    """Whether a frame is a DataFrame itself: a subclass may override access to columns."""
    return type(frame) is pd.DataFrame


def _overwrite(frame: pd.DataFrame, name: str, where: Array, cells: Array) -> None:
    """Write cells at some positions of a column of a frame, in place; the dtype is kept.

    Raises:
        InputError: the column's dtype cannot hold them.
    """
    column = frame[name]
    _check_fits(column, cells)
    plain = _is_plain_frame(frame) and isinstance(column.dtype, np.dtype)
    if plain and (memory := column.to_numpy()).flags.writeable:
        memory[where] = cells  # a view of the frame: much faster than setting the column
    else:
        frame[name] = _overwritten(column, where, cells)


def _overwritten(column: pd.Series, where: Array, cells: Array) -> pd.Series | Array:
    """A copy of a column with new cells at some positions, as an array for numpy dtypes."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        new = [c for c in pd.unique(cells) if c not in column.cat.categories and not pd.isna(c)]
        column = column.cat.add_categories(new) if new else column.copy()
        codes = column.cat.codes.to_numpy().copy()
        codes[where] = column.cat.categories.get_indexer(cells)
        fresh = pd.Categorical.from_codes(codes, dtype=column.dtype)
        return pd.Series(fresh, index=column.index, name=column.name)
    values = column.to_numpy(copy=True)
    values[where] = cells
    if isinstance(column.dtype, np.dtype) and column.dtype.kind != "O":
        return values
    return pd.Series(values, index=column.index, name=column.name, dtype=column.dtype)


def _check_fits(column: pd.Series, cells: Array) -> None:
    """Check that a column can hold cells: numpy would wrap an integer that is too large."""
    plain = plain_dtype(column.dtype)
    if plain.kind not in "iuf" or not len(cells):
        return
    missing = pd.isna(cells)
    if missing.any():
        if isinstance(column.dtype, np.dtype) and plain.kind in "iu":
            raise InputError(
                f"column {column.name!r} of dtype {column.dtype} cannot hold a missing value,"
                ' which an action may set: convert it with .astype("float64")'
            )
        cells = cells[~missing]
    low, high = ends_of(plain)
    if len(cells) and (cells.min() < low or cells.max() > high):
        raise InputError(
            f"column {column.name!r} of dtype {column.dtype} cannot hold"
            f" {cells.max() if cells.max() > high else cells.min()}, a value of the"
            " counterfactuals: convert it to a wider dtype"
        )
