"""Cases at random, of everything that the format of plan files can say, and smaller ones that may fail as well."""
import copy
import json

from oracle import axes_of, workers


def mesh(dice, world, names):
    count = dice.randint(0 if dice.random() < 0.05 else 1, 3)
    extents = []
    for _ in range(count):
        extents.append(dice.randint(1, max(1, min(4, world // max(1, size(extents))))))
    found = {"axes": [[name, extent] for name, extent in zip(dice.sample(names, count), extents)]}
    workers_in = size(extents)
    kind = dice.random()
    if kind < 0.3:
        found["ranks"] = dice.sample(range(world), workers_in)
        return found
    if kind < 0.6:
        order = dice.sample(range(count), count)
        strides, step = [0] * count, 1
        for i in order:
            if dice.random() < 0.15:
                step += 1
            strides[i] = step
            step *= extents[i]
        reach = sum(s * (e - 1) for s, e in zip(strides, extents))
        if reach < world:
            first = dice.randint(0, world - 1 - reach)
            for i in range(count):
                if dice.random() < 0.1:  # the other way round
                    first += strides[i] * (extents[i] - 1)
                    strides[i] = -strides[i]
            found["first"], found["strides"] = first, strides
            return found
    found["first"] = dice.randint(0, world - workers_in)
    return found


def size(extents):
    n = 1
    for e in extents:
        n *= e
    return n


def cut_of(dice, n, axes, extents):
    if len(axes) == 1 and dice.random() < 0.3 or axes and dice.random() < 0.05:
        ends = sorted(dice.randint(0, n) for _ in range(size(extents[a] for a in axes) - 1))
        return {"lengths": [b - a for a, b in zip([0] + ends, ends + [n])], "axes": axes}
    cover = {"blocks": axes}
    if dice.random() < 0.4:
        cover["grain"] = dice.randint(1, 4)
    return cover if axes or dice.random() < 0.1 else {"whole": True}


def window(dice, n, axes, extents):
    for _ in range(20):
        k, s, d = dice.randint(1, 5), dice.randint(1, 3), dice.randint(1, 2)
        pads = [dice.randint(0, 4), dice.randint(0, 4)]
        boundary = dice.choice(["zero", "reflect", "replicate", "periodic"])
        outputs = (n + sum(pads) - d * (k - 1) - 1) // s + 1
        if outputs < 1 or n == 0 and boundary != "zero" and sum(pads) > 0 or boundary == "reflect" and max(pads) >= n:
            continue
        if dice.random() < 0.1:
            outputs -= dice.randint(0, outputs)
        return {"haloed": {"outputs": cut_of(dice, outputs, axes, extents), "extent": outputs, "kernel": k, "stride": s,
                           "padding": pads, "dilation": d, "boundary": boundary}}
    return cut_of(dice, n, axes, extents)


def side(dice, shape, placed, copies, haloed):
    """Covers of every dimension, and what `copies` lets an axis mean that cuts nothing."""
    extents = dict(placed["axes"])
    axes = list(extents)
    dice.shuffle(axes)
    cuts = [[] for _ in shape]
    meaning = {}
    for axis in axes:
        if shape and dice.random() < 0.65:
            dice.choice(cuts).append(axis)
            continue
        what = dice.choice(copies)
        if what == "on":
            what = {"on": dice.randrange(extents[axis])}
        if what != "replicate" or dice.random() < 0.5:
            meaning[axis] = what
    dims = []
    for n, cut in zip(shape, cuts):
        windowed = haloed and dice.random() < (0.45 if cut else 0.05)
        dims.append(window(dice, n, cut, extents) if windowed else cut_of(dice, n, cut, extents))
    return {"mesh": placed, "dims": dims, "meaning": meaning}


def case(dice, name):
    world = dice.randint(1, 12)
    shape, room = [], 1200
    for _ in range(dice.randint(0 if dice.random() < 0.1 else 1, 4)):
        n = 0 if dice.random() < 0.03 else dice.randint(1, min(14, room))
        room //= max(n, 1)
        shape.append(n)
    names = ["a", "b", "c", "d"]
    first = mesh(dice, world, names)
    second = mesh(dice, world, names) if dice.random() < 0.5 else copy.deepcopy(first)
    fold = dice.random() < 0.3
    if fold:
        begin, end = side(dice, shape, first, ["partial"], True), side(dice, shape, second, ["on"], False)
    else:
        copies = ["replicate", "invariant", "on"]
        begin, end = side(dice, shape, first, copies, False), side(dice, shape, second, copies, True)
        if first == second and dice.random() < 0.1:  # terms stay terms
            for axis in set(begin["meaning"]) & set(end["meaning"]):
                begin["meaning"][axis] = end["meaning"][axis] = "partial"
    return {"id": name, "map": "fold" if fold else "move", "world": world, "shape": shape,
            "element_bytes": dice.choice([1, 2, 4, 8]), "from": begin, "to": end}


def weight(value):
    """What shrinking makes less: first the sum of all numbers, then the length of the text."""
    def numbers(v):
        if isinstance(v, (dict, list)):
            return sum(map(numbers, v.values() if isinstance(v, dict) else v))
        return abs(v) if isinstance(v, int) else 0

    return numbers(value), len(json.dumps(value))


def smaller(failing):
    """Cases with one thing less, which may mean nothing."""
    def changed(change):
        other = copy.deepcopy(failing)
        try:
            change(other)
        except (KeyError, IndexError, ValueError):
            return
        if weight(other) < weight(failing):
            yield other

    for d in range(len(failing["shape"])):
        yield from changed(lambda c: [c["shape"].pop(d), c["from"]["dims"].pop(d), c["to"]["dims"].pop(d)])
        for less in (1, failing["shape"][d] // 2):
            yield from changed(lambda c: c["shape"].__setitem__(d, failing["shape"][d] - less))
        for where in ("from", "to"):
            cover = failing[where]["dims"][d]
            simpler = [{"whole": True}, {"blocks": axes_of(cover)}]
            if "haloed" in cover:
                for field, least in (("kernel", 1), ("stride", 1), ("dilation", 1), ("extent", 0)):
                    if cover["haloed"][field] > least:
                        simpler.append({"haloed": cover["haloed"] | {field: cover["haloed"][field] - 1}})
                for i in (0, 1):
                    pads = list(cover["haloed"]["padding"])
                    pads[i] = max(0, pads[i] - 1)
                    simpler.append({"haloed": cover["haloed"] | {"padding": pads}})
                simpler.append({"haloed": cover["haloed"] | {"outputs": {"blocks": axes_of(cover)}}})
            for one in simpler:
                yield from changed(lambda c: c[where]["dims"].__setitem__(d, one))
    for where in ("from", "to"):
        for axis in failing[where].get("meaning", {}):
            yield from changed(lambda c: c[where]["meaning"].pop(axis))
        yield from changed(lambda c: c[where].__setitem__("mesh", c["to" if where == "from" else "from"]["mesh"]))
        for i, (_, extent) in enumerate(failing[where]["mesh"]["axes"]):
            def narrower(c):
                m = c[where]["mesh"]
                m["axes"][i][1] = extent - 1
                if "ranks" in m:
                    m["ranks"] = m["ranks"][:len(list(workers({"axes": m["axes"], "first": 0})))]
            if extent > 1:
                yield from changed(narrower)
    yield from changed(lambda c: c.__setitem__("world", max(
        rank for where in ("from", "to") for _, rank in workers(c[where]["mesh"])) + 1))
