"""Any DiCE explainer as a `RecourseMethod`, to compare it with DEAR."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import pandas as pd
from torch import Tensor

from dear_dice.interface import OF_FEATURES, Interface
from dear_dice.model import Host, model_arguments
from dear_plugin import Case, ClassGoal, RangeGoal, Wrapped, isolated


def wrap_dice(explainer: Any, *, seed: int = 0, **arguments: Any) -> WrappedDice:
    """A DiCE explainer as a method that can be compared with DEAR.

    Constraints are kept, rows are rounded and scored again by the user's model, and every row is
    in the result, a failure with its reason. Frozen features go to DiCE as `features_to_vary`,
    ranges as `permitted_range`. Categories of a frame may be numbers or booleans, of which the
    answers have DiCE's text; a target may be a label of the model's `classes_`.

    Args:
        explainer: `dice_ml.Dice(d, m, method=...)`, of any method. DiCE's "gradient" needs a torch
            module; its "kdtree" one of two columns, if it is a module. Its "genetic" does not end
            where a row has no counterfactual within the constraints.
        seed: of the global generators that DiCE draws from; their state is restored.
        **arguments: what `dear_plugin.Schema.infer` takes of features, such as `immutable`,
            `increasing`, `ranges` and `costs`, and more for the explainer's
            `generate_counterfactuals`.
    """
    marks = {name: arguments.pop(name) for name in OF_FEATURES if name in arguments}
    interface = Interface(explainer.data_interface, **marks)
    return WrappedDice(explainer, interface, seed, arguments)


@final
class WrappedDice(Wrapped):
    """See `wrap_dice`.

    DiCE processes one row at a time; it prints, draws from global generators and writes into its
    data interface. All of that is undone, so it should run in one thread.
    """

    package = "DiCE"

    def __init__(
        self, explainer: Any, interface: Interface, seed: int, arguments: Mapping[str, Any]
    ) -> None:
        host = Host(explainer.model, explainer.data_interface)
        super().__init__(schema=interface.schema, **model_arguments(host, interface))
        self.explainer = explainer
        self.interface, self.seed = interface, seed
        self.arguments = dict(arguments)

    def _explained(self, case: Case) -> tuple[Tensor, list[str]]:
        permitted, rows = self._values(case), self.encoder.frame(case.x)
        moved, reasons = case.x.clone(), [""] * len(case)
        for i in range(len(case)):
            try:
                moved[i] = self._asked(case, i, rows.iloc[i : i + 1], permitted[i])
            except Exception as error:  # one row's failure must not affect the others
                reasons[i] = f"{type(error).__name__}: {error}"
        return moved, reasons

    def _asked(
        self, case: Case, i: int, query: pd.DataFrame, permitted: Mapping[str, Any]
    ) -> Tensor:
        """(p,) DiCE's counterfactual of row i, a frame of one row."""
        limits, schema = case.feasible.limits, self.schema
        fixed = (limits.floor[i] == limits.ceiling[i]).tolist()
        owners = zip(schema.column_names, schema.owner, strict=True)
        vary = [name for name, j in owners if not fixed[j]]
        arguments = {**_goal(case, i), **self.arguments, "permitted_range": permitted}
        data = self.explainer.data_interface
        kept = data.permitted_range
        try:
            with isolated(self.seed):
                found = self.explainer.generate_counterfactuals(
                    query, total_CFs=1, features_to_vary=vary, **arguments
                ).cf_examples_list[0]
        finally:
            data.permitted_range = kept  # DiCE overwrites it
        sparse = found.final_cfs_df_sparse
        frame = (found.final_cfs_df if sparse is None else sparse).head(1)
        return self.encoder.rows(frame, before=case.x[i : i + 1])[0]


def _goal(case: Case, i: int) -> dict[str, Any]:
    """The target of row i as DiCE's arguments."""
    goal, (low, high) = case.goal, case.goal.wanted(case.aim)[i].tolist()
    if isinstance(goal, RangeGoal):
        return {"desired_range": [low, high]}
    if not isinstance(goal, ClassGoal):
        raise NotImplementedError(f"DiCE has no arguments for the target {goal}")
    wanted, least = int(goal.columns[i]), 0.5 if math.isnan(low) else low
    return {"desired_class": wanted, "stopping_threshold": least if wanted else 1.0 - least}
