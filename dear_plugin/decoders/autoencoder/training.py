"""Training: one loop with early stop, a history and a progress bar that can be switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from dear_plugin._validation.settings import boolean, number, validate, whole

Losses = Callable[[Tensor, torch.Generator], dict[str, Tensor]]

MOST_HELD = 2048


@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes:
        epochs: passes over the rows, at most.
        batch: rows a step, about: a pass is cut into equal parts; those of all members of an
            ensemble together.
        rate: Adam's learning rate, annealed to zero along a cosine.
        patience: epochs without a better held-out loss before the loop stops.
        most_steps: an upper limit on all steps, so that a million rows cost no more than needed.
        progress: show a bar.

    Raises:
        SettingError: a value that a setting cannot have.
    """

    epochs: int = 150
    batch: int = 512
    rate: float = 2e-2
    patience: int = 40
    most_steps: int = 500
    progress: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no setting."""
        validate(
            self,
            epochs=whole(1),
            batch=whole(1),
            rate=number(),
            patience=whole(0),
            most_steps=whole(1),
            progress=boolean,
        )


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
    *,
    members: int = 1,
) -> History:
    """Minimise the sum of some losses.

    Args:
        losses: a batch (b, p) and a generator -> named scalar terms, already weighted; with
            members (e, b, p).
        parameters: what to train; the best held-out state is put back at the end.
        rows: (n, p) training rows; a tenth, at most `MOST_HELD`, is held out.
        how: the settings.
        generator: of the batches and of what the losses draw.
        members: e, where there are several each has a bootstrap sample of the rows.
    """
    weights = list(parameters)
    order = torch.randperm(len(rows), generator=generator)
    held, rest = _held_out(order)
    judge = _Judge(losses, rows[held], int(torch.randint(2**31, (1,), generator=generator)))
    if members > 1:
        rest = rest[torch.randint(len(rest), (members, len(rest)), generator=generator)]
    a_pass = max(round(rest.numel() / how.batch), 1)
    steps = min(how.most_steps, how.epochs * a_pass)
    optimiser = torch.optim.Adam(weights, lr=how.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
    history, best, left = History(stopped="all steps taken"), _Best(weights), steps
    for _ in _bar(range(-(-steps // a_pass)), how.progress):
        shuffled = rest[..., torch.randperm(rest.shape[-1], generator=generator)]
        batches = shuffled.tensor_split(a_pass, -1)[:left]
        left -= len(batches)
        means = _epoch(losses, rows, batches, optimiser, generator, schedule)
        means["held_out"] = judge()
        history.epochs.append(means)
        if best.waited(means["held_out"]) >= how.patience:
            history.stopped = f"no better for {how.patience} epochs"
            break
    best.restore()
    return history


def _held_out(order: Tensor) -> tuple[Tensor, Tensor]:
    """Shuffled rows as those held out and the rest; a single row is both."""
    held = order[: min(max(len(order) // 10, 1), MOST_HELD)]
    return held, order[len(held) :] if len(order) > len(held) else order


def _epoch(
    losses: Losses,
    rows: Tensor,
    batches: Iterable[Tensor],
    optimiser: torch.optim.Optimizer,
    generator: torch.Generator,
    schedule: torch.optim.lr_scheduler.LRScheduler,
) -> dict[str, float]:
    """One pass; the mean of every term."""
    seen: list[dict[str, Tensor]] = []
    for batch in batches:
        terms = losses(rows[batch], generator)
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(terms.values())).sum().backward()
        optimiser.step()
        schedule.step()
        seen.append({name: term.detach() for name, term in terms.items()})
    return {name: float(torch.stack([t[name] for t in seen]).mean()) for name in seen[0]}


@dataclass(frozen=True)
class _Judge:
    """The held-out loss, drawn alike at every epoch, so that epochs can be compared."""

    losses: Losses
    rows: Tensor
    seed: int

    @torch.no_grad()
    def __call__(self) -> float:
        rng = torch.Generator().manual_seed(self.seed)
        return float(sum(self.losses(self.rows, rng).values()))


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
