"""Writing: new rows into a copy of the user's frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.columns import column_resolution, is_plain_frame, overwrite, user_values
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.data.units import brief, snap_to_ends


def patch(
    encoder: Encoder,
    frame: pd.DataFrame,
    x: Tensor,
    *,
    rows: Tensor,
    ends: tuple[Tensor, Tensor] | None = None,
) -> tuple[pd.DataFrame, Tensor]:
    """A copy of a frame with new rows written to it, and these rows as read back from it.

    Only changed cells are written. They are read back since a column's dtype may round them,
    except labels in object columns.

    Args:
        encoder: the encoder of the rows.
        frame: the n factual rows in user units.
        x: (n, p) the factual rows.
        rows: (n, p) the counterfactual rows.
        ends: the least and greatest allowed number in user units, (n, p) double each; numbers
            outside by a rounding error are set to them.
    """
    out, seen, values = frame.copy(), x.cpu().numpy().copy(), rows.detach().cpu().numpy()
    changed = values != seen
    inexact, plain = [], is_plain_frame(frame)
    for j in np.flatnonzero(changed.any(0)).tolist():
        feature, moved = encoder.schema.features[j], np.flatnonzero(changed[:, j])
        column = out[feature.name]
        places = column_resolution(feature, column.dtype).decimals
        own = values[moved, j]
        cells = brief(feature, user_values(feature, own, places), own, places)
        if ends is not None and feature.kind is Kind.NUMERIC:
            low, high = (end.numpy()[moved, j] for end in ends)
            cells = snap_to_ends(feature, cells, (low, high), column.dtype)
        if column.dtype == object and feature.dtype == "int64":
            cells = cells.astype(np.int64)
        overwrite(out, feature.name, moved, cells)
        if plain and feature.kind is not Kind.NUMERIC and column.dtype == object:
            seen[moved, j] = values[moved, j]
        else:
            inexact.append(j)
    encoder.read_into(out, inexact, into=seen, allow_bad_cells=True, fixed=torch.ones_like(x) > 0)
    # Cells that cannot be read are of rows that are not changed.
    still = ~changed.any(1)
    seen[still] = x.cpu().numpy()[still]
    return out, torch.from_numpy(seen)
