"""check_tensors: dtype, shape and range of saved tensors."""

import pytest
import torch

from dear_plugin._validation.tensors import Shape, check_tensors

SHAPES = {
    "at": Shape("n", torch.int64, 0, "m"),
    "table": Shape("m+ 2"),
    "ends": Shape("n", below=None),
}
VALID = {
    "at": torch.tensor([0, 2, 1]),
    "table": torch.zeros(3, 2),
    "ends": torch.tensor([0.0, 1.0, torch.inf]),
}


def test_matching_tensors_pass():
    check_tensors(VALID, SHAPES, {"m": 3})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("at", torch.zeros(3)),
        ("at", torch.tensor([0, 3, 1])),
        ("at", torch.tensor([0, -1, 1])),
        ("table", torch.zeros(3, 3)),
        ("table", torch.zeros(2, 2)),
        ("table", torch.zeros(3)),
        ("table", torch.full((3, 2), torch.inf)),
        ("ends", torch.zeros(2)),
        ("ends", torch.full((3,), torch.nan)),
        ("ends", torch.full((3,), -torch.inf)),
    ],
)
def test_another_size_dtype_or_range_is_rejected_by_name(name, bad):
    with pytest.raises(ValueError, match=f"{name} must"):
        check_tensors({**VALID, name: bad}, SHAPES, {"m": 3})


def test_an_empty_dimension_is_rejected_where_sizes_are_positive():
    with pytest.raises(ValueError, match="table must"):
        check_tensors({"table": torch.zeros(0, 2)}, SHAPES, {})


def test_the_shape_of_a_tensor_matches_tensors_like_it():
    check_tensors({"x": torch.ones(2, 3)}, {"x": Shape.of(torch.zeros(2, 3))}, {})
    with pytest.raises(ValueError, match="x must"):
        check_tensors({"x": torch.ones(3, 2)}, {"x": Shape.of(torch.zeros(2, 3))}, {})
