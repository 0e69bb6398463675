"""Training: one loop with early stop, a history and a progress bar that can be switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

Losses = Callable[[Tensor, torch.Generator], dict[str, Tensor]]


@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes:
        epochs: passes over the rows, at most.
        batch: rows a step.
        rate: Adam's learning rate, annealed to zero along a cosine.
        patience: epochs without a better held-out loss before the loop stops.
        most_steps: an upper limit on all steps, so that a million rows cost no more than needed.
        progress: show a bar.
    """

    epochs: int = 40
    batch: int = 256
    rate: float = 5e-3
    patience: int = 8
    most_steps: int = 1500
    progress: bool = False


@dataclass
class History:
    """What the loop saw.

    Attributes:
        epochs: one dict of mean losses per epoch, with `held_out` beside the training terms.
        stopped: why the loop ended.
    """

    epochs: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "not trained"


def train(
    losses: Losses,
    parameters: Iterable[nn.Parameter],
    rows: Tensor,
    how: Training,
    generator: torch.Generator,
) -> History:
    """Minimise the sum of some losses.

    Args:
        losses: a batch (b, p) and a generator -> named scalar terms, already weighted.
        parameters: what to train; the best held-out state is put back at the end.
        rows: (n, p) training rows; a tenth, at most 2048, is held out.
        how: the settings.
        generator: of the batches and of what the losses draw.
    """
    weights = list(parameters)
    order = torch.randperm(len(rows), generator=generator)
    held = rows[order[: min(max(len(rows) // 10, 1), 2048)]]
    rest = order[len(held) :] if len(rows) > len(held) else order
    steps = min(how.most_steps, how.epochs * -(-len(rest) // how.batch))
    optimiser = torch.optim.Adam(weights, lr=how.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
    history, best = History(), _Best(weights)
    for epoch in _bar(range(how.epochs), how.progress):
        if epoch * -(-len(rest) // how.batch) >= steps:
            history.stopped = "all steps taken"
            break
        shuffled = rest[torch.randperm(len(rest), generator=generator)]
        means = _epoch(losses, rows, shuffled.split(how.batch), optimiser, generator, schedule)
        with torch.no_grad():
            means["held_out"] = float(sum(losses(held, generator).values()))
        history.epochs.append(means)
        if best.waited(means["held_out"]) >= how.patience:
            history.stopped = f"no better for {how.patience} epochs"
            break
    else:
        history.stopped = "all epochs done"
    best.restore()
    return history


def _epoch(
    losses: Losses,
    rows: Tensor,
    batches: Iterable[Tensor],
    optimiser: torch.optim.Optimizer,
    generator: torch.Generator,
    schedule: torch.optim.lr_scheduler.LRScheduler,
) -> dict[str, float]:
    """One pass; the mean of every term."""
    sums: dict[str, float] = {}
    count = 0
    for batch in batches:
        terms = losses(rows[batch], generator)
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()
        optimiser.step()
        schedule.step()
        count += 1
        for name, term in terms.items():
            sums[name] = sums.get(name, 0.0) + float(term.detach())
    return {name: total / max(count, 1) for name, total in sums.items()}


class _Best:
    """The weights of the best epoch so far."""

    def __init__(self, weights: list[nn.Parameter]) -> None:
        self.weights, self.loss, self.wait = weights, float("inf"), 0
        self.kept: list[Tensor] = []

    def waited(self, loss: float) -> int:
        """Note an epoch's loss; how many epochs there was no better one."""
        self.wait = 0 if loss < self.loss else self.wait + 1
        if loss < self.loss:
            self.loss = loss
            self.kept = [w.detach().clone() for w in self.weights]
        return self.wait

    def restore(self) -> None:
        """Put the best weights back."""
        with torch.no_grad():
            for weight, kept in zip(self.weights, self.kept, strict=False):
                weight.copy_(kept)


def _bar(epochs: range, shown: bool) -> Iterable[int]:
    from tqdm.auto import tqdm

    bar: Iterable[int] = tqdm(epochs, desc="training", disable=not shown, leave=False)
    return bar
