"""Combining: which actions on several features to try, by addition of what was tried alone.

An action on more features is expected to have the sum of the margins that its parts gain, and the
sum of their costs. Nothing is decoded for that, and decoders are fitted only of the sets whose
expected actions are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.search.actions import Actions
from dear_plugin.search.problem import SearchProblem

# The actions of each part, and the combinations tried of a set and the sets tried of a row.
PARTS, A_SET, SETS = 8, 8, 32
# The combinations tried of a row that acts on one larger set.
A_LARGER_SET = 64
CELLS = 1 << 24


@dataclass(frozen=True)
class Parts:
    """A few actions of each row and set, of which none costs more and gains less than another.

    Attributes:
        values: (n, s, c, w) the new values.
        cost: (n, s, c) their cost; infinite where there are fewer.
        gain: (n, s, c) by how much the margin grows.
    """

    values: Tensor
    cost: Tensor
    gain: Tensor

    @classmethod
    def of(cls, problem: SearchProblem, tried: Actions, before: Tensor, count: int) -> Parts:
        """Choose from tried actions.

        Args:
            problem: n rows and s sets.
            tried: their actions.
            before: (n,) the margin of the factual.
            count: the number c of actions.
        """
        n, (s, w) = len(problem), problem.sets.positions.shape
        tried = _rounded(tried.part(tried.margin.isfinite()))
        pairs = tried.rows * s + tried.sets
        # By cost, then by pair: a stable order of both.
        order = tried.cost.argsort(stable=True)
        order = order[pairs[order].argsort(stable=True)]
        tried, pairs = tried.part(order), pairs[order]
        place = torch.arange(len(pairs)) - torch.searchsorted(pairs, pairs)
        most = int(place.max()) + 1 if len(place) else 1
        margin = torch.full((n * s, most), -torch.inf)
        margin[pairs, place] = tried.margin
        best = margin.cummax(1).values
        front = margin.isfinite()
        front[:, 1:] &= margin[:, 1:] > best[:, :-1]
        # Evenly spread over those that gain more than all cheaper ones.
        number, total = front.cumsum(1), front.sum(1, keepdim=True)
        wanted = 1 + (torch.arange(count) * (total - 1).clamp_min(0) / max(count - 1, 1)).round()
        at = torch.searchsorted(number.float(), wanted).clamp_max(most - 1)
        known = torch.full((n * s, most), -1)
        known[pairs, place] = torch.arange(len(pairs))
        chosen = known.gather(1, at)
        fresh = torch.ones_like(chosen, dtype=torch.bool)
        fresh[:, 1:] = chosen[:, 1:] != chosen[:, :-1]
        there = fresh & (total > 0)
        if not len(tried):
            empty = torch.full((n, s, count), torch.inf)
            return cls(torch.zeros(n, s, count, w), empty, -empty)
        gain = tried.margin[chosen] - before.repeat_interleave(s)[:, None]
        return cls(
            tried.values[chosen].view(n, s, count, w),
            torch.where(there, tried.cost[chosen], torch.inf).view(n, s, count),
            torch.where(there, gain, -torch.inf).view(n, s, count),
        )


@dataclass(frozen=True)
class Combinations:
    """Actions to try: rows (m,), positions of sets (m,) among `sets`, and values, (m, w)."""

    sets: ActionSets
    rows: Tensor
    which: Tensor
    values: Tensor


def pairs_of(
    problem: SearchProblem, parts: Parts, pairs: ActionSets, need: Tensor
) -> Combinations | None:
    """The combinations of two features to try.

    Args:
        problem: n rows; the features of the pairs are among its single sets.
        parts: actions of these.
        pairs: the pairs.
        need: (n,) by how much the margin must grow.
    """
    alone = {n[0]: i for i, n in enumerate(problem.sets.names) if len(n) == 1}
    first, second = torch.tensor([[alone[name] for name in names] for names in pairs.names]).T
    places = _places(problem.sets, first.tolist(), second.tolist(), pairs)
    rows = torch.arange(len(problem))
    found = []
    for some in rows.split(max(1, CELLS // (len(pairs) * PARTS**2))):
        gain, cost = parts.gain[some], parts.cost[some]
        q = len(some)
        total = (gain[:, first, :, None] + gain[:, second, None]).view(q, len(pairs), -1)
        price = (cost[:, first, :, None] + cost[:, second, None]).view(q, len(pairs), -1)
        key = _key(total, price, need[some, None, None])
        best, which = key.topk(A_SET, dim=2, largest=False)
        _, sets = best[..., 0].topk(min(len(pairs), SETS), 1, largest=False)
        key = best.gather(1, sets[..., None].expand(-1, -1, A_SET))
        at = which.gather(1, sets[..., None].expand(-1, -1, A_SET))
        row, place, column = key.isfinite().nonzero(as_tuple=True)
        chosen, combination = sets[row, place], at[row, place, column]
        left, right = combination // PARTS, combination % PARTS
        both = torch.cat(
            [
                parts.values[some[row], first[chosen], left],
                parts.values[some[row], second[chosen], right],
            ],
            1,
        )
        found.append((some[row], chosen, both.gather(1, places[chosen])))
    rows, chosen, values = (torch.cat(each) for each in zip(*found, strict=True))
    if not len(rows):
        return None
    used, which = chosen.unique(return_inverse=True)
    names = tuple(pairs.names[i] for i in used.tolist())
    members = tuple(pairs.members[i] for i in used.tolist())
    tried = ActionSets(names, members, pairs.p)
    return Combinations(tried, rows, which, values[:, : tried.positions.shape[1]])


def _places(
    sets: ActionSets, first: Sequence[int], second: Sequence[int], pairs: ActionSets
) -> Tensor:
    """(s, w) where the values of pairs are among those of their parts, one after the other."""
    width, rows = sets.positions.shape[1], pairs.positions.tolist()
    out = []
    for a, b, row in zip(first, second, rows, strict=True):
        at = dict(zip(sets.members[a], range(width), strict=False))
        at |= dict(zip(sets.members[b], range(width, 2 * width), strict=False))
        out.append([at[j] for j in row])
    return torch.tensor(out)


def one_more(
    problem: SearchProblem,
    parts: Parts,
    base: tuple[ActionSets, Actions],
    before: Tensor,
    need: Tensor,
) -> Combinations | None:
    """The combinations of one feature more than was tried, of one set for each row.

    Args:
        problem: n rows and the single features that may be added.
        parts: actions of these.
        base: sets of features, and their tried actions.
        before: (n,) the margin of the factuals.
        need: (n,) by how much the margin must grow.
    """
    sets, tried = base[0], _rounded(base[1])
    subjects = problem.classifier.encoder.schema.subjects
    found: list[tuple[int, tuple[int, ...], list[float]]] = []
    alone = [i for i, name in enumerate(problem.sets.names) if len(name) == 1]
    for row in tried.rows.unique().tolist():
        mine = tried.part(tried.rows == row)
        order = _key(mine.margin - before[row], mine.cost, need[row]).argsort(stable=True)
        options = []
        for at in order[:PARTS].tolist():
            base_set = sets.members[int(mine.sets[at])]
            known = dict(zip(base_set, mine.values[at].tolist(), strict=False))
            for i in alone:
                added = problem.sets.members[i]
                if added[0] in known:
                    continue
                gain = parts.gain[row, i] + mine.margin[at] - before[row]
                price = parts.cost[row, i] + mine.cost[at]
                keys = _key(gain, price, need[row])
                new = tuple(sorted((*base_set, *added)))
                options += [
                    (key, new, known | dict(zip(added, values, strict=False)))
                    for key, values in zip(
                        keys.tolist(), parts.values[row, i].tolist(), strict=True
                    )
                    if key < float("inf")
                ]
        if not options:
            continue
        _, best, _ = min(options, key=lambda option: option[0])
        some = sorted((o for o in options if o[1] == best), key=lambda option: option[0])
        found += [(row, best, [o[2][j] for j in best]) for o in some[:A_LARGER_SET]]
    if not found:
        return None
    members = tuple(sorted({chosen for _, chosen, _ in found}))
    labels = tuple(tuple(dict.fromkeys(subjects[j] for j in each)) for each in members)
    return Combinations(
        ActionSets(labels, members, sets.p),
        torch.tensor([row for row, _, _ in found]),
        torch.tensor([members.index(chosen) for _, chosen, _ in found]),
        pad_sequence([torch.tensor(values) for _, _, values in found], batch_first=True),
    )


def _rounded(tried: Actions) -> Actions:
    """Actions whose margins have 11 bits: those that models round differently are equal."""
    bits = tried.margin.contiguous().view(torch.int32) & -(1 << 12)
    return replace(tried, margin=bits.view(torch.float32))


def _key(gain: Tensor, cost: Tensor, need: Tensor) -> Tensor:
    """An order of combinations: by cost if the gain suffices, after these the greatest gains.

    Infinite where there is no combination.
    """
    later = 1e6 - gain.double().clamp(-1e5, 1e5)
    enough = torch.where(gain >= need, cost.double(), later)
    return torch.where(cost.isfinite() & gain.isfinite(), enough, torch.inf)
