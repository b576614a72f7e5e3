"""Cases that mean nothing with the code that answers them, and files that are no plan files with what must be named."""
import copy
import json

TURN = {"id": "r", "map": "move", "world": 6, "shape": [10, 7], "element_bytes": 8,
        "from": {"mesh": {"axes": [["a", 2], ["b", 3]], "first": 0}, "dims": [{"blocks": ["a"]}, {"whole": True}], "meaning": {}},
        "to": {"mesh": {"axes": [["a", 2], ["b", 3]], "first": 0}, "dims": [{"whole": True}, {"blocks": ["b"]}], "meaning": {}}}
WINDOW = {"outputs": {"blocks": ["a"]}, "extent": 10, "kernel": 3, "stride": 1, "padding": [1, 1], "dilation": 1, "boundary": "zero"}
AXES = [["a", 2], ["b", 3]]
ROWS = [{"blocks": ["a"]}, {"whole": True}]


def refused():
    """(what is wrong, code, case) of cases that differ from one that is right in one thing."""
    def halo(**other):
        return [{"haloed": WINDOW | other}, {"whole": True}]

    def first(cover):
        return [cover, {"whole": True}]

    differences = [
        ("an axis that cuts two dimensions", "partition.twice", {"from.dims": [{"blocks": ["a"]}, {"blocks": ["a"]}]}),
        ("an axis that cuts a dimension twice", "partition.twice", {"from.dims": first({"blocks": ["a", "a"]})}),
        ("a meaning of an axis that cuts", "partition.twice", {"from.meaning": {"a": "invariant"}}),
        ("a meaning of an axis that cuts a window", "partition.twice", {"to.dims": halo(), "to.meaning": {"a": "replicate"}}),
        ("an axis that the mesh lacks", "partition.axis", {"to.dims": first({"blocks": ["c"]})}),
        ("a meaning of an axis that the mesh lacks", "partition.axis", {"to.meaning": {"z": "replicate"}}),
        ("a coordinate that the axis lacks", "mesh.coordinate", {"from.meaning": {"b": {"on": 3}}}),
        ("a cover too many", "partition.dimensions", {"to.dims": [{"whole": True}] * 3}),
        ("a mesh that is larger than the world", "launch.world", {"world": 5}),
        ("a mesh that begins too late", "launch.world", {"to.mesh.first": 1}),
        ("a mesh before the world", "launch.world", {"to.mesh.first": -1}),
        ("strides that lead out of the world", "launch.world", {"to.mesh.strides": [3, 3]}),
        ("a rank that the world lacks", "launch.world", {"to.mesh": {"axes": AXES, "ranks": [0, 1, 2, 3, 4, 6]}}),
        ("extents whose product is too large for a number", "launch.world", {"to.mesh.axes": [[n, 2**31 - 1] for n in "abcd"]}),
        ("a rank twice", "mesh.placement", {"to.mesh": {"axes": AXES, "ranks": [0, 1, 2, 3, 4, 4]}}),
        ("strides that put two on one worker", "mesh.placement", {"to.mesh.strides": [1, 1]}),
        ("a rank too few", "mesh.ranks", {"to.mesh": {"axes": AXES, "ranks": [0, 1, 2, 3, 4]}}),
        ("a stride too few", "mesh.strides", {"to.mesh.strides": [1]}),
        ("an axis of extent 0", "mesh.extent", {"to.mesh.axes": [["a", 0], ["b", 3]]}),
        ("an axis named twice", "mesh.twice", {"to.mesh.axes": [["a", 2], ["a", 3]]}),
        ("a grain of 0", "partition.grain", {"from.dims": first({"blocks": ["a"], "grain": 0})}),
        ("lengths that are too short", "lengths.sum", {"from.dims": first({"lengths": [5, 4], "axes": ["a"]})}),
        ("lengths that are too long", "lengths.sum", {"from.dims": first({"lengths": [5, 6], "axes": ["a"]})}),
        ("a negative length", "lengths.sum", {"from.dims": first({"lengths": [-1, 11], "axes": ["a"]})}),
        ("a length too many", "lengths.count", {"from.dims": first({"lengths": [5, 5, 0], "axes": ["a"]})}),
        ("lengths of other outputs", "lengths.sum", {"to.dims": halo(outputs={"lengths": [5, 6], "axes": ["a"]})}),
        ("a negative extent", "shape.negative", {"shape": [10, -1]}),
        ("outputs of a negative extent", "shape.negative", {"to.dims": halo(extent=-1)}),
        ("more elements than can be counted", "shape.overflow", {"shape": [2**40, 2**40]}),
        ("a reflection of more than there is", "window.reflect", {"to.dims": halo(padding=[10, 0], boundary="reflect")}),
        ("outputs that reflect more than there is", "window.reflect", {"to.dims": halo(extent=30, boundary="reflect")}),
        ("a kernel of 0", "window.positive", {"to.dims": halo(kernel=0)}),
        ("a stride of 0", "window.positive", {"to.dims": halo(stride=0)}),
        ("a negative padding", "window.positive", {"to.dims": halo(padding=[-1, 1])}),
        ("a kernel that is too wide", "window.kernel", {"to.dims": halo(kernel=13, extent=1)}),
        ("an edge of nothing", "window.empty", {"shape": [0, 7], "to.dims": halo(boundary="periodic", kernel=1)}),
        ("a move from halos", "move.tiling", {"from.dims": halo()}),
        ("a move from terms", "move.tiling", {"from.meaning": {"b": "partial"}}),
        ("a move to terms", "move.tiling", {"to.dims": ROWS, "to.meaning": {"b": "partial"}}),
        ("a fold to halos", "move.tiling", {"map": "fold", "to.dims": halo(outputs={"blocks": ["a", "b"]})}),
        ("a fold to copies", "move.tiling", {"map": "fold", "from.meaning": {"b": "partial"}, "to.dims": ROWS}),
        ("a fold of equal copies", "rule.sum", {"map": "fold"}),
        ("a fold of invariant copies", "rule.sum", {"map": "fold", "from.meaning": {"b": "invariant"}}),
        ("seventeen dimensions", "layout.size", {"shape": [1] * 17}),
        ("seventeen axes", "layout.size", {"world": 99, "from.mesh.axes": [[f"a{i}", 1] for i in range(17)]}),
    ]
    for what, code, changes in differences:
        yield what, f"tessera.{code}", changed(changes)


def changed(changes):
    """The right case with the fields at some paths replaced."""
    case = copy.deepcopy(TURN)
    for path, value in changes.items():
        *outer, last = path.split(".")
        inner = case
        for name in outer:
            inner = inner[name]
        inner[last] = value
    return case


def without(path):
    case = copy.deepcopy(TURN)
    *outer, last = path.split(".")
    inner = case
    for name in outer:
        inner = inner[name]
    del inner[last]
    return json.dumps(case)


def bad_files():
    """(what is wrong, the file's text, words that must be said)."""
    yield "no JSON", '{"cases": [', ["JSON"]
    yield "a number", "3", []
    yield "cases that are no list", '{"cases": 3}', ["cases"]
    for path in ("id", "map", "world", "shape", "element_bytes", "from", "to", "from.mesh", "to.dims", "to.mesh.axes", "to.mesh.first"):
        yield f"no {path}", without(path), path.split(".")[-1:] + ["lacks"]
    for field in WINDOW:
        less = {name: value for name, value in WINDOW.items() if name != field}
        yield f"no {field}", json.dumps(changed({"to.dims": [{"haloed": less}, {"whole": True}]})), [field, "lacks", "dims[0]"]
    for what, changes, words in [
        ("no axes of lengths", {"to.dims": [{"lengths": [5, 5]}, {"whole": True}]}, ["axes", "lacks"]),
        ("no cover", {"to.dims": [{"blockz": ["a"]}, {"whole": True}]}, ["dims[0]"]),
        ("a field written wrongly", {"to.dims": [{"blocks": ["a"], "grian": 2}, {"whole": True}]}, ["grian"]),
        ("a map that is none", {"map": "moves"}, ["map"]),
        ("an extent that is no number", {"shape": [10, "7"]}, ["shape[1]"]),
        ("a boundary that is none", {"to.dims": [{"haloed": WINDOW | {"boundary": "same"}}, {"whole": True}]}, ["boundary"]),
        ("a meaning that is none", {"to.meaning": {"a": "spread"}}, ["meaning.a"]),
        ("a mesh that is placed twice", {"to.mesh.ranks": [0, 1, 2, 3, 4, 5]}, ["ranks", "first"]),
        ("a world of too many workers", {"world": 10**9}, ["world", "between"]),
        ("element_bytes of 0", {"element_bytes": 0}, ["element_bytes"]),
    ]:
        yield what, json.dumps(changed(changes)), words
