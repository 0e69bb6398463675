"""The training loop, with early stopping, a history and an optional progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from dear_plugin._threads import bar
from dear_plugin._validation import boolean, number, setting, validated, whole

Losses = Callable[[Tensor, torch.Generator], dict[str, Tensor]]

MOST_HELD_OUT = 2048


@validated
@dataclass(frozen=True)
class Training:
    """Settings of the training loop.

    Attributes:
        epochs: passes over the rows, at most.
        batch: rows of a step, about: an epoch is cut into equal parts. Networks that are trained
            together on several samples share them.
        rate: Adam's learning rate.
        patience: epochs without a lower held-out loss before the loop stops.
        most_steps: an upper limit on all steps, which bounds the time for very many rows.
        progress: show a bar at once, wherever stderr goes; others appear after two seconds, in a
            terminal or a notebook.
        anneal: lower the rate to zero along a cosine over all steps; otherwise it is constant.

    Raises:
        SettingError: a value that a setting cannot have.

    Example:
        >>> from dear_plugin import Autoencoder, Training
        >>> quick = Autoencoder(training=Training(epochs=20, progress=True))
    """

    epochs: int = setting(150, whole(1))
    batch: int = setting(512, whole(1))
    rate: float = setting(2e-2, number())
    patience: int = setting(40, whole(0))
    most_steps: int = setting(500, whole(1))
    progress: bool = setting(False, boolean)
    anneal: bool = setting(True, boolean)


@dataclass
class History:
    """The losses of a training run.

    Attributes:
        epochs: one dict of mean losses per epoch: the training terms and `held_out`.
        stopped: why the loop ended.

    Example:
        >>> from dear_plugin import Autoencoder
        >>> Autoencoder().history.stopped
        'not trained'
    """

    epochs: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "not trained"


def train(
    losses: Losses,
    parameters: Iterable[nn.Parameter],
    rows: Tensor,
    training: Training,
    generator: torch.Generator,
) -> History:
    """Minimise the sum of some losses.

    Args:
        losses: a batch (b, p), or (u, b, p), and a generator -> named scalar terms, already
            weighted.
        parameters: what to train; the state of the lowest held-out loss is restored at the end.
        rows: (n, p) training rows, or those of u samples, (u, n, p); a tenth, at most
            `MOST_HELD_OUT`, is held out.
        training: the settings.
        generator: of the batches and of what the losses draw.
    """
    weights = list(parameters)
    order = torch.randperm(rows.shape[-2], generator=generator)
    held_out, rest = _split(order)
    seed = int(torch.randint(2**31, (1,), generator=generator))
    samples = rows.shape[:-2].numel()
    per_epoch = max(round(samples * len(rest) / training.batch), 1)
    steps = min(training.most_steps, training.epochs * per_epoch)
    optimiser = torch.optim.Adam(weights, lr=training.rate)
    schedule = _schedule(optimiser, training.anneal, steps)
    history, best, left = History(stopped="all steps taken"), _BestWeights(weights), steps
    epochs = range(-(-steps // per_epoch))
    for _ in bar(epochs, "training", shown=training.progress):
        shuffled = rest[torch.randperm(len(rest), generator=generator)]
        batches = shuffled.tensor_split(per_epoch)[:left]
        left -= len(batches)
        means = _epoch(losses, rows, batches, optimiser, generator, schedule)
        means["held_out"] = _total(losses, rows[..., held_out, :], seed)
        history.epochs.append(means)
        if best.update(means["held_out"]) >= training.patience:
            history.stopped = f"no better for {training.patience} epochs"
            break
    best.restore()
    return history


def _schedule(
    optimiser: torch.optim.Optimizer, anneal: bool, steps: int
) -> torch.optim.lr_scheduler.LRScheduler:
    """The learning rate over the steps: a cosine to zero, or constant."""
    if anneal:
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
    return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda _: 1.0)


def _split(order: Tensor) -> tuple[Tensor, Tensor]:
    """Shuffled positions of rows held out and of the rest; a single row is both."""
    held_out = order[: min(max(len(order) // 10, 1), MOST_HELD_OUT)]
    return held_out, order[len(held_out) :] if len(order) > len(held_out) else order


def _epoch(
    losses: Losses,
    rows: Tensor,
    batches: Iterable[Tensor],
    optimiser: torch.optim.Optimizer,
    generator: torch.Generator,
    schedule: torch.optim.lr_scheduler.LRScheduler,
) -> dict[str, float]:
    """Train for one pass; the mean of every term."""
    history: list[dict[str, Tensor]] = []
    for batch in batches:
        terms = losses(rows[..., batch, :], generator)
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()
        optimiser.step()
        schedule.step()
        history.append({name: term.detach() for name, term in terms.items()})
    return {name: float(torch.stack([t[name] for t in history]).mean()) for name in history[0]}


@torch.no_grad()
def _total(losses: Losses, rows: Tensor, seed: int) -> float:
    """The loss on held-out rows; under one seed, epochs are compared under equal draws."""
    return float(sum(losses(rows, torch.Generator().manual_seed(seed)).values()))


class _BestWeights:
    """The weights of the best epoch so far."""

    def __init__(self, weights: list[nn.Parameter]) -> None:
        self.weights, self.loss, self.waited = weights, float("inf"), 0
        self.best: list[Tensor] = []

    def update(self, loss: float) -> int:
        """Take an epoch's loss; how many epochs have passed since the best one."""
        self.waited = 0 if loss < self.loss else self.waited + 1
        if loss < self.loss:
            self.loss = loss
            self.best = [w.detach().clone() for w in self.weights]
        return self.waited

    def restore(self) -> None:
        """Copy the best weights back."""
        with torch.no_grad():
            for weight, best in zip(self.weights, self.best, strict=False):
                weight.copy_(best)
