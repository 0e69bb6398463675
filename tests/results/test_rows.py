"""Rows: records of rows, selected, joined and merged column by column."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin.results.rows import Rows


@dataclass(frozen=True)
class Record(Rows):
    share: Tensor
    done: Tensor
    text: Any
    kinds: Any = ()
    options: dict = field(default_factory=dict)


def record(start, text):
    share = torch.arange(start, start + 3.0)
    return Record(share, share > 1.0, np.array(list(text), dtype=object), options={"from": text})


def cells(found):
    return found.share.tolist(), found.done.tolist(), "".join(found.text)


def test_rows_are_selected_in_any_order():
    found = record(0, "abc").select(torch.tensor([2, 0, 2]))
    assert cells(found) == ([2.0, 0.0, 2.0], [True, False, True], "cac")


def test_a_column_may_have_a_gradient():
    share = torch.arange(3.0, requires_grad=True)
    found = Record(share, share > 1.0, np.array(list("abc"))).select(torch.tensor([1]))
    assert cells(found) == ([1.0], [False], "b")


def test_records_are_joined_with_what_holds_for_all_of_the_first():
    found = Record.joined([record(0, "abc"), record(7, "xyz")])
    assert cells(found) == ([0, 1, 2, 7, 8, 9], [False, False, True, True, True, True], "abcxyz")
    assert found.options == {"from": "abc"}


def test_rows_are_replaced_by_those_of_another_record_and_the_record_is_kept():
    first = record(0, "abc")
    found = first.merged(record(7, "xyz").select(torch.tensor([0, 1])), torch.tensor([2, 0]))
    assert cells(found) == ([8.0, 1.0, 7.0], [True, False, True], "ybx")
    assert cells(first) == cells(record(0, "abc"))
