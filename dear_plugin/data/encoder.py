"""Encoder: frames in, checked once; rows, (n, p), and encoded columns, (n, d), out, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import one_thread
from dear_plugin.data.inference import misfit
from dear_plugin.data.kinds.cells import Array, Reading
from dear_plugin.data.layout import Layout
from dear_plugin.data.schema import Schema
from dear_plugin.errors import InputError, near


class Encoder(Layout):
    """Convert frames to tensors and back; the tensors are those of `Layout`.

    Reading checks that every feature is present once, with values that the schema allows.

    Args:
        schema: the features, in the order of the encoding.

    Example:
        >>> Encoder(Schema.infer(pd.DataFrame({"job": ["a", "b", "c"]}))).d
        3
    """

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema.features)
        self.schema = schema

    @one_thread()
    def encode(self, frame: pd.DataFrame) -> Tensor:
        """The encoded tensor of a frame, (n, d) float32: what a torch model is trained on.

        Raises:
            InputError: see `rows`.
        """
        return self.expand(self.rows(frame))

    def rows(
        self, frame: pd.DataFrame, fixed: Tensor | None = None, before: Tensor | None = None
    ) -> Tensor:
        """The rows of a frame, (n, p) float64.

        Args:
            frame: a frame with the schema's features; other columns are ignored.
            fixed: (n, p) bool, the cells that may hold a category that no training row has.
            before: (n, p) the rows of which another package made the frame: of the columns of one
                feature, of which it may set one to 1 and leave another at 1, the one that it sets
                counts.

        Raises:
            InputError: an absent or duplicate feature, no rows, or cells that cannot be read; all
                complaints at once.
        """
        self.check_columns(frame)
        if not len(frame):
            raise InputError("the frame has no rows; at least one is needed")
        rows, wrong = self._read(frame, fixed, before)
        if wrong:
            raise InputError("; ".join(each.complaint for each in wrong))
        return torch.from_numpy(rows)

    def readable_rows(
        self, frame: pd.DataFrame, fixed: Tensor | None = None
    ) -> tuple[Tensor, dict[int, str]]:
        """The rows of a frame, possibly empty, with a reason for each unreadable one.

        Args:
            frame: as in `rows`.
            fixed: as in `rows`.

        Returns:
            (n, p) float64 rows, undefined in unreadable cells; the reasons by row position.

        Raises:
            InputError: columns that are unreadable as a whole; all complaints at once.
        """
        self.check_columns(frame)
        rows, wrong = self._read(frame, fixed)
        reasons: dict[int, list[str]] = {}
        for reading in wrong:
            if reading.reasons is None:
                raise InputError("; ".join(each.complaint for each in wrong))
            for i, line in reading.reasons():
                reasons.setdefault(i, []).append(line)
        return torch.from_numpy(rows), {i: "; ".join(some) for i, some in sorted(reasons.items())}

    def _read(
        self, frame: pd.DataFrame, fixed: Tensor | None = None, before: Tensor | None = None
    ) -> tuple[Array, list[Reading]]:
        """(n, p) the rows of a frame, and the readings with cells that cannot be read."""
        rows, wrong = np.empty((len(frame), self.p)), []
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported
            for j, feature in enumerate(self.features):
                own = (None if each is None else each[:, j].numpy() for each in (fixed, before))
                reading = feature.read_frame(frame, *own)
                if reading.complaint:
                    wrong.append(reading)
                if not reading.complaint or reading.reasons is not None:
                    rows[:, j] = reading.values
        return rows, wrong

    def frame(self, rows: Tensor) -> pd.DataFrame:
        """Rows, (n, p), as a frame of the features alone, with the dtypes of the schema."""
        cells = self._columns_of(rows)
        columns = {f.name: f.column(cells[f.name]) for f in self.schema.columns}
        return pd.DataFrame(columns, copy=False)

    def cells(self, rows: Tensor) -> npt.NDArray[np.float64]:
        """(n, q) the row values of the columns of frames, of rows, (n, p)."""
        cells = self._columns_of(rows)
        return np.stack([cells[name] for name in self.schema.column_names], 1)

    def _columns_of(self, rows: Tensor) -> dict[str, Array]:
        """The row values, (n,), of each column of frames, of rows, (n, p)."""
        values = rows.detach().cpu().numpy()
        return {
            member.name: cells
            for j, feature in enumerate(self.features)
            for member, cells in zip(feature.members, feature.spread(values[:, j]).T, strict=True)
        }

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The features of a frame, (n, p), with the dtypes of the schema, as models take them.

        A column whose values such a dtype cannot hold, such as 33.5 for integers, keeps its own.
        """
        out = frame[list(self.schema.column_names)]
        wrong = [f for f in self.schema.columns if not f.has_dtype(out[f.name].dtype)]
        return out.assign(**{f.name: f.cast(out[f.name]) for f in wrong}) if wrong else out

    def check_columns(self, frame: pd.DataFrame) -> None:
        """Check that a frame has every feature once.

        Raises:
            InputError: no frame, or absent or duplicate columns.
        """
        if complaint := misfit(frame):
            raise InputError(complaint)
        if absent := [n for n in self.schema.column_names if n not in frame.columns]:
            raise InputError(f"missing columns: {near(absent, frame.columns)}")
