"""Graph: how causes are stated, what is no graph of causes, and where a schema keeps it."""

import logging

import networkx as nx
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.errors import SchemaError

FRAME = pd.DataFrame(
    {
        "age": range(40),
        "school": [i % 7 for i in range(40)],
        "wage": [i * 3 % 20 for i in range(40)],
        "job_cook": [int(i % 3 == 0) for i in range(40)],
        "job_nurse": [int(i % 3 == 1) for i in range(40)],
        "job_civil": [int(i % 3 == 2) for i in range(40)],
        "paid": [0, 1] * 20,
    }
)
CAUSES = {"school": ["age"], "job": ["school"], "wage": ["job_cook", "school"]}
EDGES = [("age", "school"), ("school", "job"), ("job", "wage"), ("school", "wage")]


def schema(causes=CAUSES, **marks) -> Schema:
    return Schema.infer(FRAME, target="paid", causes=causes, **marks)


class TestStated:
    def test_every_feature_has_its_causes_and_a_column_stands_for_its_feature(self):
        assert dict(schema().causes) == {
            "age": (),
            "school": ("age",),
            "wage": ("school", "job"),
            "job": ("school",),
        }

    @pytest.mark.parametrize(
        "causes",
        [
            nx.DiGraph(EDGES),
            nx.MultiDiGraph([*EDGES, EDGES[0]]),
            nx.DiGraph([*EDGES, ("wage", "paid")]),
            {**CAUSES, "paid": ["wage", "age"]},
            {name: set(causes) for name, causes in CAUSES.items()},
        ],
        ids=["a graph", "two edges", "with the target", "and its causes", "sets"],
    )
    def test_it_is_stated_in_other_ways(self, causes):
        assert schema(causes) == schema()

    def test_a_graph_without_edges_says_that_nothing_follows(self):
        graph = nx.DiGraph()
        graph.add_nodes_from(["age", "wage"])
        assert schema(graph).causal_order.held([0]) == (1, 2, 3)

    @pytest.mark.parametrize("nothing", [None, {}])
    def test_nothing_stated_is_no_order(self, nothing):
        assert not schema(nothing).causal_order.is_stated
        assert schema(nothing).causes == ()

    def test_a_definition_states_the_causes_of_a_column_that_the_graph_leaves_out(self):
        """Or else no action on a part of a sum would keep it."""
        frame = FRAME.assign(both=FRAME["school"] + FRAME["wage"], half=FRAME["age"] / 2)
        found = dict(Schema.infer(frame, causes={"wage": ["age"], "half": ["wage"]}).causes)
        assert found["both"] == ("school", "wage")
        assert found["half"] == ("wage",)

    @pytest.mark.parametrize(
        ("causes", "named"),
        [
            ({"wage": ["age"]}, ["school", "job"]),
            ({"wage": ["age", "school"], "job": ["wage"]}, ["wage"]),
        ],
        ids=["not connected", "immutable, with causes"],
    )
    def test_what_does_not_follow_is_told_once(self, causes, named, caplog):
        with caplog.at_level(logging.INFO, "dear_plugin.data.causes"):
            immutable = ["wage"] if "job" in causes else ["age"]
            schema(causes, immutable=immutable).replace("wage", precision=0)
        (record,) = (r for r in caplog.records if r.name == "dear_plugin.data.causes")
        assert str(named) in record.getMessage()


class TestChecks:
    @pytest.mark.parametrize(
        ("causes", "message"),
        [
            ({"wage": ["agee"]}, "causes: unknown features: 'agee' \\(did you mean 'age'"),
            ({"jobs": ["age"]}, "causes: unknown features: 'jobs' \\(did you mean 'job'"),
            (nx.DiGraph([("talent", "wage")]), "causes: unknown features: 'talent'"),
            ({"wage": ["paid"]}, "'paid' is the target, which is no cause"),
            ({"wage": ["wage"]}, "wage -> wage is a cycle"),
            (
                {"wage": ["school"], "school": ["age"], "age": ["wage"]},
                "age -> school -> wage -> age is",
            ),
            ({"job_cook": ["wage"], "wage": ["job_nurse"]}, "is a cycle.*in one tier"),
            ({"job_cook": ["job_nurse"]}, "is a cycle"),
            ({"wage": "age"}, "causes must be {feature: its causes}.*got 'age' for 'wage'"),
            ({"wage": 3}, "got 3 for 'wage'"),
            (["age", "wage"], "causes must be {feature: its causes}.*networkx.DiGraph; got"),
            (nx.Graph(EDGES), "expected a directed graph, got a Graph"),
        ],
    )
    def test_what_is_no_graph_of_causes_is_an_error(self, causes, message):
        with pytest.raises(SchemaError, match=message):
            schema(causes)

    def test_an_order_is_stated_once(self):
        with pytest.raises(SchemaError, match="both tiers and causes"):
            schema(tiers=[["age"]])


class TestKept:
    def test_the_line_has_the_causes_of_each_feature(self):
        text = repr(schema(exactly_one=[], causes={"wage": ["age", "school"], "school": ["age"]}))
        assert "causes of: school (age), wage (age, school)" in text
        assert "causes" not in repr(schema(None))

    def test_the_table_has_a_column_of_them(self):
        html = schema()._repr_html_()
        assert "causes</th>" in html
        assert "age</td>" in html
        assert "tier" not in html
