"""What names in code mean, where the order of questions could show."""

from __future__ import annotations

from itertools import permutations

from hades.ingest.code_graph.corpus import CodeDocument
from hades.ingest.code_graph.names import CodeNames
from hades.ingest.nodes import func_keys


def write_module(classes: dict[str, list[str]]) -> CodeDocument:
    names = [f"m.{name}" for name in classes]
    symbols = [
        {"name": name.rpartition(".")[2], "qualified_name": f"m.{name}", "kind": "class", "bases": bases}
        for name, bases in classes.items()
    ]
    keys = func_keys("d", names)
    funcs = list(zip(keys, names, strict=True))
    return CodeDocument("d", "f", {"module": "m", "symbols": symbols}, funcs, {key: [0, 1] for key in keys})


def test_bases_of_classes_in_a_circle_do_not_depend_on_the_order_of_questions() -> None:
    module = write_module({"A": ["B.In", "C"], "B": ["A.In"], "C": [], "C.In": [], "C.In.In": []})
    found = []
    for order in permutations(["m.A", "m.B", "m.C"]):
        names = CodeNames([module])
        found.append({name: names.ancestors(name) for name in order})
    assert all(one == found[0] for one in found)
    assert found[0]["m.A"] == ("m.C",)
    assert found[0]["m.B"] == ("m.C.In",)
