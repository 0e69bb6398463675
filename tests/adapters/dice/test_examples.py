"""DiCE's native results: JSON, pictures, importances, pickles, and the split in all of them."""

import json
import pickle

import dice_ml
import numpy as np
import pandas as pd
import pytest
from dice_ml.counterfactual_explanations import CounterfactualExplanations
from dice_ml.explainer_interfaces.explainer_base import ExplainerBase
from raiutils.exceptions import UserConfigValidationException
from sklearn.linear_model import LogisticRegression

from dear_dice import DiceDEAR, Explanations
from tests.adapters.dice.asked import answers, examples, same_frames

COSTS = ["direct_cost", "indirect_cost", "cost", "suppressed_cost"]


@pytest.fixture(scope="module")
def result(explainer, refused):
    """Of rows with several counterfactuals each, with importances."""
    return explainer.global_feature_importance(refused, total_CFs=10)


class TestSplit:
    def test_it_is_aligned_with_the_counterfactuals(self, result, explainer):
        for example in result.cf_examples_list:
            found, own = example.final_cfs_df, example.test_instance_df.iloc[0]
            assert example.actions.index.equals(found.index)
            costs = example.actions[COSTS].to_numpy()
            np.testing.assert_allclose(costs[:, 0] + costs[:, 1], costs[:, 2], atol=1e-6)
            for i, names in enumerate(example.actions["acted_on"]):
                assert all(found[name][i] != own[name] for name in names.split(" + "))

    def test_costs_are_those_of_the_rows_that_are_shown(self, result, explainer, loan):
        units = {feature.name: feature.unit_of_cost for feature in explainer.dear.schema}
        spans = pd.Series(units)[loan.continuous]
        for example in result.cf_examples_list:
            found, own = example.final_cfs_df, example.test_instance_df.iloc[0]
            moved = (found[loan.continuous] - own[loan.continuous].astype(float)).abs() / spans
            flipped = (found[loan.words] != own[loan.words]).sum(axis=1)
            np.testing.assert_allclose(
                example.actions["cost"], moved.sum(axis=1) + flipped, atol=1e-4
            )

    def test_texts_marks_and_support_are_aligned_with_them(self, result):
        for example in result.cf_examples_list:
            acted_on = example.actions["acted_on"].tolist()
            marked = [example.acted.columns[marks] for marks in example.acted.to_numpy()]
            assert [" + ".join(names) for names in marked] == acted_on
            for words, names in zip(example.describe(), acted_on, strict=True):
                assert names.split(" + ")[0] in words
            assert example.support.index.equals(example.final_cfs_df.index)
            assert example.support.between(0, 1).all()


class TestJson:
    def test_the_round_trip_keeps_the_split(self, result):
        again = Explanations.from_json(result.to_json())
        assert isinstance(again, Explanations) and again == result
        assert again.summary_importance == result.summary_importance
        assert again.local_importance == result.local_importance
        for a, b in zip(again.cf_examples_list, result.cf_examples_list, strict=True):
            pd.testing.assert_frame_equal(a.actions, b.actions, check_exact=False, rtol=1e-12)
            pd.testing.assert_frame_equal(a.acted, b.acted)
            assert a.told.equals(b.told) and len(a.told)
            assert a.final_cfs_df.values.tolist() == b.final_cfs_df.values.tolist()
            assert a.test_instance_df.values.tolist() == b.test_instance_df.values.tolist()
            assert a.describe() == b.describe() != []
            assert a.support.tolist() == pytest.approx(b.support.tolist())
        assert Explanations.from_json(again.to_json()) == result

    def test_dice_reads_it_and_drops_the_split(self, result):
        plain = CounterfactualExplanations.from_json(result.to_json())
        assert type(plain) is CounterfactualExplanations and plain == result
        assert plain.metadata == result.metadata == {"version": "2.0"}

    def test_json_of_dice_comes_back_as_dice_reads_it(self, result):
        text = CounterfactualExplanations(result.cf_examples_list).to_json()
        assert type(Explanations.from_json(text)) is CounterfactualExplanations
        assert Explanations.from_json(json.dumps({"a": 1})) == {"a": 1}

    def test_a_row_without_recourse_is_null_and_keeps_its_reason(
        self, explainer, refused, hardest
    ):
        vary = ["gender", "income"]
        result = explainer.generate_counterfactuals(
            pd.concat([refused, hardest]), 2, features_to_vary=vary
        )
        again = Explanations.from_json(result.to_json())
        assert again == result and json.loads(result.to_json())["cfs_list"][-1] is None
        own, read = result.cf_examples_list[-1], again.cf_examples_list[-1]
        assert read.reason == own.reason != ""
        for example in (own, read):
            assert example.final_cfs_df is example.final_cfs_df_sparse is None
            assert example.actions.empty and example.acted.empty and example.support.empty
            assert example.describe() == []
        assert {e.reason for e in result.cf_examples_list if e.final_cfs_df is not None} == {""}


@pytest.fixture
def unsolved(explainer, refused):
    """The example of a row without a counterfactual."""
    out_of_reach = {"features_to_vary": ["gender"], "stopping_threshold": 0.999999}
    return explainer._generate_counterfactuals(refused.iloc[9:10], 1, **out_of_reach)


class TestPictures:
    def test_only_changes_shows_each_change_whatever_its_size(self, loan, capsys):
        """DiCE's own "-" hides one of 40,000 to 57,000, and its list fails on text."""
        features = loan.features.assign(income=loan.features["income"] * 1000)
        model = loan.pipeline(features, loan.labels, LogisticRegression(max_iter=2000), loan.words)
        query = features[model.predict(features) == 0].head(3)
        explainer = loan.dear(model, features, loan.labels)
        result = explainer.generate_counterfactuals(query, 2)
        rows = []
        for example in result.cf_examples_list:
            (own,), found = example.test_instance_df.values, example.final_cfs_df.values.tolist()
            rows += [
                ["-" if a == b else a for a, b in zip(new, own, strict=True)] for new in found
            ]
        assert any(row[[*features].index("income")] != "-" for row in rows)
        for each in (result, Explanations.from_json(result.to_json())):
            each.visualize_as_list(show_only_changes=True)
            shown = capsys.readouterr().out
            assert all(str(row) in shown for row in rows)
        result.visualize_as_dataframe(show_only_changes=True)
        shown = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert all([*map(str, row)] in [line[1:] for line in shown] for row in rows)

    def test_no_column_of_what_is_told_is_cut(self, result, capsys):
        example = result.cf_examples_list[0]
        with pd.option_context("display.width", 40, "display.max_columns", 3):
            example.visualize_as_dataframe()
        (head,) = [line for line in capsys.readouterr().out.splitlines() if "how sure" in line]
        assert head.split() == ["what", "feature", "old", "new", "how", "sure"]
        whole = example.told[example.told["feature"].isin(["age", "duration"])]
        assert set(whole["new"].map(type)) <= {int}

    def test_a_frame(self, result, capsys):
        result.visualize_as_dataframe(show_only_changes=True)
        shown = capsys.readouterr().out
        assert shown.count("Query instance (original outcome : 0)") == 12
        assert shown.count("Diverse Counterfactual set (new outcome: 1)") == 12
        assert "-" in shown and "direct_cost" not in shown

    def test_a_list(self, result, capsys):
        result.visualize_as_list()
        assert capsys.readouterr().out.count("'own', ") > 0

    def test_below_it_what_each_acts_on_what_follows_and_how_sure_it_is(
        self, explainer, refused, capsys
    ):
        result = explainer.generate_counterfactuals(refused[:1], total_CFs=3)
        (example,) = result.cf_examples_list
        (again,) = Explanations.from_json(result.to_json()).cf_examples_list
        told = example.told
        assert [*told] == ["what", "feature", "old", "new", "how sure"]
        for i, names in example.actions["acted_on"].items():
            after, before = example.final_cfs_df.iloc[i], example.test_instance_df.iloc[0]
            own, confidence = told.loc[[i]], example.actions["confidence"][i]
            assert {*own["feature"]} == {n for n in before.index[:-1] if after[n] != before[n]}
            assert (own["new"] == after[own["feature"]].array).all()
            action = own[own["what"] == "action"]
            assert {*action["feature"]} == {*names.split(" + ")}
            assert {*action["how sure"]} == {f"confidence {confidence:.2f}"}
        follows = told.loc[told["what"] == "what follows", "how sure"]
        assert len(follows) and follows.str.fullmatch(r"association, in \d+ of 16 resamples").all()
        pd.testing.assert_frame_equal(again.told, told)
        example.visualize_as_dataframe()
        shown = capsys.readouterr().out
        assert "what follows" in shown and follows.iloc[0] in shown
        again.actions.loc[0, ["credible", "reason"]] = False, "too far"
        again.visualize_as_list()
        assert "; weak answer: too far'" in capsys.readouterr().out

    def test_every_change_of_a_counterfactual_is_in_its_lines(self, result, refused):
        for example in result.cf_examples_list:
            before = example.test_instance_df[refused.columns].iloc[0]
            moved = example.final_cfs_df[refused.columns] != before
            found = example.changes.groupby("at")["feature"].agg(set).tolist()
            assert found == [set(refused.columns[row]) for row in moved.to_numpy()]
            direct = example.changes[example.changes["kind"] == "direct"]
            marked = [set(example.acted.columns[row]) for row in example.acted.to_numpy()]
            assert direct.groupby("at")["feature"].agg(set).tolist() == marked

    @pytest.mark.parametrize("show", ["visualize_as_dataframe", "visualize_as_list"])
    def test_no_counterfactual(self, show, unsolved, capsys):
        getattr(unsolved, show)()
        shown = capsys.readouterr().out
        assert "No counterfactuals found!" in shown
        assert unsolved.reason[:30] in shown


class TestImportance:
    def test_only_what_is_acted_on_counts(self, result, explainer, refused):
        followed = 0
        for example, shares in zip(result.cf_examples_list, result.local_importance, strict=True):
            acted = set(example.acted.columns[example.acted.any()])
            assert {name for name, share in shares.items() if share} == acted
            before = example.test_instance_df[refused.columns].iloc[0]
            moved = (example.final_cfs_df[refused.columns] != before).any()
            followed += len(set(refused.columns[moved]) - acted)
        assert followed
        every = pd.concat([e.acted for e in result.cf_examples_list])
        assert result.summary_importance == pytest.approx(every.mean().to_dict())
        (alone,) = explainer.local_feature_importance(refused[:1], total_CFs=10).local_importance
        assert alone == pytest.approx(result.local_importance[0])

    def test_of_examples_made_before_of_rows_with_few_or_none(self, explainer, refused, unsolved):
        """There are fewer than ten where fewer are minimal; DiCE refuses these."""
        made = examples(explainer, refused.iloc[:9], 2)
        result = explainer.global_feature_importance(refused.iloc[:10], [*made, unsolved])
        every = pd.concat([example.acted for example in made])
        assert result.summary_importance == pytest.approx(every.mean().to_dict())
        assert not any(result.local_importance[9].values())
        (alone,) = explainer.local_feature_importance(refused[:1], made[:1]).local_importance
        assert alone == pytest.approx(result.local_importance[0])
        summary = explainer.global_feature_importance(
            refused.iloc[:10], [*made, unsolved], local_importance=False
        )
        assert summary.local_importance is None
        assert summary.summary_importance == result.summary_importance

    def test_of_another_methods_examples(self, black_box, loan, refused):
        other = dice_ml.Dice(loan.data, black_box.model, method="random")
        made = other.generate_counterfactuals(refused.iloc[:1], total_CFs=10, sample_size=300)
        result = black_box.local_feature_importance(
            refused.iloc[:1], cf_examples_list=made.cf_examples_list
        )
        assert "cfs_list" in result.to_json()

    @pytest.mark.parametrize(("scope", "count"), [("local", 3), ("global", 10)])
    def test_too_few(self, scope, count, explainer, refused):
        importance = getattr(explainer, f"{scope}_feature_importance")
        with pytest.raises(UserConfigValidationException, match="greater than or equal to 10"):
            importance(refused.iloc[:1], total_CFs=count)


class TestPickle:
    def test_a_saved_explainer_is_small_and_answers_the_same(self, either, refused, tmp_path):
        query, path = refused.iloc[:3], tmp_path / "explainer.pkl"
        before = answers(either, query, 2)
        either.serialize_explainer(path)
        # What it is fitted on, without the decoders and caches of 7 MB.
        assert path.stat().st_size < 500_000
        again = ExplainerBase.deserialize_explainer(path)
        assert type(again) is DiceDEAR
        assert same_frames(answers(again, query, 2), before)

    def test_a_result_keeps_texts_and_numbers_and_no_model(self, loan, sklearn_model, refused):
        class Local:
            predict_proba = staticmethod(sklearn_model.model.predict_proba)

        explainer = DiceDEAR(loan.data, dice_ml.Model(model=Local(), backend="sklearn"))
        result = explainer.generate_counterfactuals(refused.iloc[:3], 2)
        content = pickle.dumps(result)
        assert len(content) < len(pickle.dumps(loan.data)) + 30_000
        again = pickle.loads(content)
        assert again == result and again.to_json() == result.to_json()
        for a, b in zip(again.cf_examples_list, result.cf_examples_list, strict=True):
            assert a.describe() == b.describe() and len(a.describe()) == 2
            assert a.support.equals(b.support)
            pd.testing.assert_frame_equal(a.actions, b.actions)
            assert pickle.loads(pickle.dumps(a)).describe() == b.describe()
