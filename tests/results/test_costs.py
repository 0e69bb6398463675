"""Costs: what is acted on, and what follows."""

import pandas as pd
import torch

from dear_plugin import Encoder, Proposal, Schema


class TestCosts:
    def test_a_known_split(self):
        frame = pd.DataFrame(
            {"money": [0.0, 5.0, 10.0], "town": ["A", "B", "C"], "owner": [0, 1, 1]}
        )
        encoder = Encoder(Schema.infer(frame))
        x = encoder.rows(frame.iloc[[0, 0]])
        reached = encoder.rows(frame.iloc[[1, 2]])
        direct = torch.tensor([[True, False, False], [False, True, True]])
        proposal = Proposal(reached, direct, torch.zeros(2), ["", ""])
        own, rest = proposal.costs(x, encoder, None)
        # Half of the range; another town (1) and another owner value (1).
        assert own.tolist() == [0.5, 2.0]
        assert rest.tolist() == [2.0, 1.0]
        # What follows is not paid for.
        costs = torch.tensor([[4.0, 7.0, 7.0], [9.0, 0.5, 3.0]])
        own, rest = proposal.costs(x, encoder, costs)
        assert own.tolist() == [2.0, 3.5]
        assert rest.tolist() == [2.0, 1.0]
