"""Rule: a model that is a formula."""

from torch import nn


class Rule(nn.Module):
    """A margin written down as a function of the encoded columns."""

    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, x):
        return self.margin(x)[:, None]
