"""Draw the first figure of the documentation: who is accepted after borrowing less, and one row.

python docs/first_figure.py [file]

Left, the share of refused applicants that a model accepts if all of them borrow less: with all
other features frozen, with what DEAR expects to follow, and with what follows in the simulator
that the loans are drawn from. Right, one of them.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from dear_plugin import DEAR, Schema, plots
from dear_plugin.datasets import load_loan, loan

FILE = Path(__file__).parent / "images" / "first.png"
APPLICANTS, SEED = 4_000, 7
LESS = np.linspace(0.0, 2.5, 11)
FROZEN, TOLD = "all else frozen, as other methods assume", "with what DEAR expects to follow"
TRUE = "what happens in the simulator"
STYLES = {
    FROZEN: {"color": "#808080", "linestyle": "--"},
    TOLD: {"color": plots.DIRECT["color"], "linewidth": 2.4},
    TRUE: {"color": "black", "linestyle": "none", "marker": "o", "markersize": 4.5},
}
INK = {"ha": "center", "va": "center", "fontsize": 10.5}


def study():
    """A model and DEAR, fitted on loans; refused applicants, and the noise they are drawn from."""
    data = load_loan()
    frame = data.frame.astype({"gender": "category"})
    train = frame.drop(columns=data.target)
    model = HistGradientBoostingClassifier(max_iter=50).fit(train, frame[data.target])
    schema = Schema.infer(
        train, immutable=["gender", "age"], increasing=data.increasing, tiers=data.tiers
    )
    dear = DEAR(model, schema, act_on=["loan_amount"]).fit(train)
    noise = loan.noises(APPLICANTS, np.random.default_rng(SEED))
    refused = model.predict(people(noise)) == 0
    return model, dear, {name: each[refused] for name, each in noise.items()}


def people(noise, **fixed):
    """The features of a noise, of which an intervention may fix some."""
    return loan.solve(noise, fixed).drop(columns="approved").astype({"gender": "category"})


def accepted(model, dear, noise):
    """The share of rows that are accepted with each of the loans that are smaller by `LESS`."""
    before, shares = people(noise), []
    for less in LESS:
        loans = (before["loan_amount"] - less).round(2)
        after = {
            FROZEN: before.assign(loan_amount=loans),
            TOLD: dear.apply(before, loans.to_frame()).counterfactuals,
            TRUE: people(noise, loan_amount=loans),
        }
        shares.append({name: model.predict(frame).mean() for name, frame in after.items()})
    return pd.DataFrame(shares, index=1_000 * LESS)


def curves(axes, table):
    """Draw the shares."""
    for name, style in STYLES.items():
        axes.plot(table.index, 100 * table[name], label=name, **style)
    axes.set_title("Refused applicants borrow less: how many are accepted?", loc="left")
    axes.set_xlabel("euros less")
    axes.set_ylabel("accepted (%)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def example(recourses):
    """The position of the first credible answer that needs what follows, and is clear."""
    actions = recourses.actions
    large = actions["direct_cost"].between(0.15, 0.4) & (actions["reliance"] > 0)
    return int(np.flatnonzero(actions["credible"] & large)[0])


def strip(axes, model, recourses, at):
    """Draw one row: today, what to do, what follows, and the decision."""
    before, after = recourses.factuals.iloc[at], recourses.counterfactuals.iloc[at]
    row, frozen = recourses.actions.iloc[at], recourses.factuals.iloc[[at]]
    frozen = frozen.assign(loan_amount=after["loan_amount"])
    alone = model.predict_proba(frozen)[0, 1]
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.14, 1)
    axes.set_title("One of them", loc="left")
    borrow, term = ("{:,.0f} €".format(1_000 * each["loan_amount"]) for each in (before, after))
    months = f"{before['duration']} → {after['duration']} months"
    chip(axes, 0.86, "today", f"refused: score {row['score_before']:.0%} (50% is needed)", {})
    chip(axes, 0.60, "do", f"borrow less: {borrow} → {term}", plots.DIRECT)
    chip(axes, 0.34, "then", f"the term is expected to fall: {months}", plots.INDIRECT)
    done = f"accepted: score {row['score_after']:.0%} (all else frozen: {alone:.0%})"
    chip(axes, 0.08, "decision", done, {})


def chip(axes, y, head, text, style):
    """Draw a heading and a text in a box at a height."""
    solid = style is plots.DIRECT
    paper = {"facecolor": "white", "edgecolor": "black", "boxstyle": "round,pad=0.55"}
    if style:
        paper |= {"facecolor": style["color"]}
    axes.text(0.0, y, head, fontsize=10.5, va="center", fontweight="bold")
    ink = {**INK, "ha": "left", "color": "white" if solid else "black"}
    axes.text(0.2, y, text, bbox=paper, **ink)


def main(file):
    """Write the figure."""
    model, dear, noise = study()
    recourses = dear.generate(people(noise).head(100))
    sheet, (left, right) = plots.sheet(2, width=5.3, height=3.7, shares=(1.12, 1.0))
    curves(left, accepted(model, dear, noise))
    strip(right, model, recourses, example(recourses))
    sheet.supxlabel(f"Simulated loans. {recourses.note}", fontsize=8.5)
    sheet.savefig(file, dpi=160)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else FILE)
