"""check_tensor: dtype, shape and entries of a saved tensor."""

import pytest
import torch

from dear_plugin._validation.tensors import check_tensor


def test_a_matching_tensor_passes():
    check_tensor("table", torch.zeros(3, 2), (None, 2))
    check_tensor("at", torch.tensor([0, 2]), (2,), dtype=torch.int64)
    check_tensor("ends", torch.tensor([0.0, torch.inf]), (2,), is_finite=False)


@pytest.mark.parametrize(
    "bad",
    [
        torch.zeros(3, 2, dtype=torch.int64),
        torch.zeros(3, 3),
        torch.zeros(0, 2),
        torch.zeros(3),
        torch.zeros(3, 2, 1),
        torch.full((3, 2), torch.inf),
        torch.full((3, 2), torch.nan),
    ],
    ids=lambda bad: f"{tuple(bad.shape)} {bad.dtype}",
)
def test_another_size_dtype_or_entry_is_rejected_by_name(bad):
    with pytest.raises(ValueError, match="table must"):
        check_tensor("table", bad, (None, 2))


def test_nan_is_rejected_where_infinity_is_not():
    with pytest.raises(ValueError, match="ends must"):
        check_tensor("ends", torch.full((2,), torch.nan), (2,), is_finite=False)
