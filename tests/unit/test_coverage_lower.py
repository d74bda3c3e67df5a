"""C++ rules as JSON, and what they answer then: small functions of the tests' own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from armlet.coverage import cpp
from armlet.coverage.containers import Items, Meaningless, Refused, Symbol
from armlet.coverage.cpp import Unlowerable
from armlet.coverage.evaluate import Rules
from armlet.coverage.graph import Graph, Node, Value
from armlet.coverage.lower import lower
from armlet.coverage.units import NodeUnit
from armlet.coverage.values import GraphView, NodeView

FILE = "provider/rules.cc"


def rules(text: str, root: str = "Rule", *, defined: tuple[str, ...] = ()) -> Rules:
    made = lower([root], cpp.parse({FILE: text}, defined=defined))
    # What is kept in the table is JSON.
    return Rules(functions=json.loads(json.dumps(made)))


def answer(body: str, *arguments: Any, parameters: str = "int64_t a, int64_t b") -> Any:
    return rules(f"int64_t Rule({parameters}) {{\n{body}\n}}").call("Rule", list(arguments))


def node(op: str = "Conv", *, shape: tuple[int | None, ...] | None = (1, 2, 3, 4), **attributes: Any) -> NodeView:
    made = Node(
        index=0,
        name="n",
        op=op,
        domain="",
        since=11,
        attributes=attributes,
        inputs=("x",),
        outputs=("y",),
        constraints={"T": ("x",)},
    )
    values = {"x": Value(name="x", element=1, shape=shape)}
    return NodeView(Graph(nodes=(made,), values=values, constants={}, inputs=("x",), outputs=("y",), opset=11), made)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a + 2 * b;", 7),
        ("return a % b == 1 && !(a > b) ? 5 : 6;", 5),
        ("int64_t c{a}; c *= b; c++; return c;", 4),
        ("int64_t c = 0; for (size_t i = 0; i < b; ++i) { if (i == 2) { break; } c += 10; } return c;", 20),
        ("int64_t c = 0; for (const auto& d : {1, 2, 3}) { c += d; } return c;", 6),
        ("do { if (a == 1) break; return 9; } while (false); return 8;", 8),
        ("switch (b) { case 1: return 10; case 3: break; default: return 11; } return 12;", 12),
        ("switch (a) { case 1: case 2: return 10; default: return 11; }", 10),
        ("switch (b) { case 7: return 1; default: break; } return 4;", 4),
        ("return static_cast<int64_t>(7 / 2) - (int64_t)2.9f;", 1),
        ("if (a > b) { return 1; } else if (a == 1) { return 2; } else { return 3; }", 2),
        ("LOGS_DEFAULT(VERBOSE) << a << b;\n// a comment\nreturn b;", 3),
        ("std::vector<int64_t> c; c.push_back(a); c.push_back(b); return c[1] + c.size();", 5),
        ('const auto& c = "text"; return c == "text" ? 1 : 0;', 1),
    ],
)
def test_statements_do_what_they_say(body: str, expected: int) -> None:
    assert answer(body, 1, 3) == expected


def test_conditions_of_the_preprocessor_stand_in_the_middle_of_expressions() -> None:
    text = "bool Rule(int64_t a) {\nreturn a == 1 ||\n#ifdef HALF\na == 2 ||\n#endif\na == 3;\n}"
    assert [rules(text).call("Rule", [number]) for number in (1, 2, 3)] == [True, False, True]
    assert rules(text, defined=("HALF",)).call("Rule", [2]) is True


def test_callees_write_to_their_callers_variables() -> None:
    text = """
    namespace { bool Get(int64_t a, int64_t& out) { out = a + 1; return true; } }
    struct Config { int64_t size; };
    int64_t Rule(int64_t a) { int64_t b = 0; Config c;
      if (!Get(a, b)) return 0; Get(b, c.size); return b * 10 + c.size; }
    """
    assert rules(text).call("Rule", [1]) == 23


def test_parameters_have_defaults_classes_have_bases_and_enumerators_are_themselves() -> None:
    text = """
    enum class Kind : uint8_t { First, Second };
    enum Plain { plain_one = 0, plain_two };
    int64_t Plus(int64_t a, int64_t b = 40);
    class Base { }; class Derived : public Base { };
    int64_t Plus(int64_t a, int64_t b) { return a + b; }
    int64_t Base::Answer(int64_t a) { auto k = a == 2 ? Kind::Second : Kind::First; Plain p = plain_two;
      return k == Kind::Second && p == plain_two ? Plus(a) : 0; }
    int64_t Rule(int64_t a) {
      static const std::unordered_map<std::string, Fn> table{{"x", Derived::Answer}};
      const auto entry = table.find("x");
      if (entry == table.cend()) { return 1; }
      return entry->second(a);
    }
    """
    made = rules(text)
    assert made.call("Rule", [2]) == 42
    assert made.call("Rule", [3]) == 0


def test_the_graph_is_seen_through_the_vocabulary() -> None:
    text = """
    bool Rule(const Node& node) {
      const auto* shape = node.InputDefs()[0]->Shape();
      if (shape == nullptr || shape->dim_size() != 4) { return false; }
      if (!shape->dim(2).has_dim_value()) { return false; }
      ProtoHelperNodeContext nc(node);
      OpNodeProtoHelper info(&nc);
      std::string mode;
      info.GetAttrOrDefault<std::string>("mode", &mode, "nearest");
      return mode == "linear" && info.GetAttrOrDefault<int64_t>("group", 1) == 1;
    }
    """
    made = rules(text)
    assert made.call("Rule", [node(mode="linear")]) is True
    assert made.call("Rule", [node()]) is False
    assert made.call("Rule", [node(shape=(1, 2, None, 4), mode="linear")]) is False
    assert made.reason is not None
    assert made.reason.said == "its height is free"
    assert made.reason.place == "rules.cc:5"
    made.call("Rule", [node(shape=(1, 2, 3))])
    assert made.reason.said == "its input has 3 dimensions"
    made.call("Rule", [node(shape=None)])
    assert made.reason.said == "the shape of its input is not known"


def test_what_c_gives_no_meaning_to_is_said_with_its_line() -> None:
    made = rules(
        "bool Rule(const Node& node) {\n  const auto* s = node.InputDefs()[0]->Shape();\n"
        "  return s->dim_size() == 1;\n}"
    )
    with pytest.raises(Meaningless, match=r"null pointer at rules\.cc:3"):
        made.call("Rule", [node(shape=None)])
    with pytest.raises(Meaningless, match="item 3 of 2"):
        rules("int64_t Rule(const Shape& s) { return s[3]; }").call("Rule", [Items([1, 2])])


def test_macros_return_and_throw() -> None:
    text = """
    Status Inner(int64_t a) { ORT_RETURN_IF(a > 3, "more than ", 3); return Status::OK(); }
    Status Rule(int64_t a) { if (a == 0) { ORT_THROW("never ", a); } ORT_RETURN_IF_ERROR(Inner(a));
      ORT_RETURN_IF_NOT(a > 1, "less"); return Status::OK(); }
    """
    made = rules(text)
    assert [made.call("Rule", [number]).error for number in (1, 2, 4)] == ["less", "", "more than 3"]
    with pytest.raises(Refused, match="never 0"):
        made.call("Rule", [0])


def test_units_and_constants() -> None:
    text = """
    bool Rule(const NodeUnit& unit, const GraphViewer& graph) {
      if (unit.UnitType() == NodeUnit::Type::QDQGroup) { return false; }
      return !graph.IsConstantInitializer(unit.Inputs()[0].node_arg.Name(), true);
    }
    """
    view = node()
    assert rules(text).call("Rule", [NodeUnit(view.graph, view.node), GraphView(view.graph)]) is True
    assert Symbol("A::b") == Symbol("A::b") != Symbol("A::c")


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return node.Weather();", "method in the vocabulary: Weather"),
        ("return Weather(node);", "function in the vocabulary: Weather"),
        ("return node.weather;", "field in the vocabulary: weather"),
        ("while (node.Exists()) { } return true;", "no rule for while_statement"),
        ("do { } while (true); return true;", "a loop that may run again"),
        ("auto f = [&](int a) { return a; }; return true;", "no rule for lambda_expression"),
        ("Weather w(node); return true;", "type in the vocabulary|unknown"),
        ("return weather;", "an unknown name"),
        ("for (int i = 9; i > 0; --i) { } return true;", "does not count up"),
        ("return node.Exists() | true;", "no such operator"),
    ],
)
def test_what_nobody_taught_ends_the_generation_with_its_line(body: str, what: str) -> None:
    text = f"\n\nbool Rule(const Node& node) {{\n  {body}\n}}"
    with pytest.raises(Unlowerable, match=what) as caught:
        rules(text)
    assert str(caught.value).startswith(f"{FILE}:4: ")


def test_two_functions_of_one_name_and_a_missing_one_are_refused() -> None:
    one = "namespace {{ bool Same() {{ return {0}; }} }}"
    texts = {"a.cc": one.format("true"), "b.cc": one.format("false"), FILE: "bool Rule() { return Same(); }"}
    with pytest.raises(Unlowerable, match="Same is defined in"):
        lower(["Rule"], cpp.parse(texts, defined=()))
    with pytest.raises(Unlowerable, match="no function Missing"):
        lower(["Missing"], cpp.parse(texts, defined=()))
    with pytest.raises(Unlowerable, match="cannot be parsed"):
        rules("bool Rule() { return (1 +; }")
