"""What a plan file's case means, element by element and without any of the engine's arithmetic: slow, short and obviously right."""
import itertools


def deal(items, p, i):
    """Hand i of items dealt to p as evenly as can be, in order; the first hands get the extra ones."""
    sizes = [0] * p
    for k in range(len(items)):
        sizes[k % p] += 1
    begin = sum(sizes[:i])
    return items[begin:begin + sizes[i]]


def workers(mesh):
    """The coordinates of a mesh, {axis: coordinate}, and the world rank of each."""
    names = [name for name, _ in mesh["axes"]]
    extents = [extent for _, extent in mesh["axes"]]
    for number, at in enumerate(itertools.product(*map(range, extents))):
        if "ranks" in mesh:
            rank = mesh["ranks"][number]
        elif "strides" in mesh:
            rank = mesh["first"] + sum(s * c for s, c in zip(mesh["strides"], at))
        else:
            rank = mesh["first"] + number
        yield dict(zip(names, at)), rank


def axes_of(cover):
    """The axes that cut a dimension."""
    if "haloed" in cover:
        return axes_of(cover["haloed"]["outputs"])
    return cover.get("axes", []) if "lengths" in cover else cover.get("blocks", [])


def read(position, n, boundary):
    """The element that a position reads, or None for padding."""
    if boundary == "periodic":
        return position % n
    if boundary == "replicate":
        return min(max(position, 0), n - 1)
    if boundary == "reflect":
        return -position if position < 0 else 2 * (n - 1) - position if position >= n else position
    return position if 0 <= position < n else None


def held(cover, n, at, extents):
    """The indices of one dimension that coordinates hold."""
    if "haloed" in cover:
        w = cover["haloed"]
        outputs = held(w["outputs"], w["extent"], at, extents)
        if not outputs or n == 0:
            return set()
        first = w["stride"] * min(outputs) - w["padding"][0]
        last = w["stride"] * max(outputs) - w["padding"][0] + w["dilation"] * (w["kernel"] - 1)
        return {read(i, n, w["boundary"]) for i in range(first, last + 1)} - {None}
    if "lengths" in cover:
        part = 0
        for axis in cover["axes"]:
            part = part * extents[axis] + at[axis]
        begin = sum(cover["lengths"][:part])
        return set(range(begin, begin + cover["lengths"][part]))
    grain = cover.get("grain", 1)
    units = [range(i, min(i + grain, n)) for i in range(0, n, grain)]
    for axis in cover.get("blocks", []):
        units = deal(units, extents[axis], at[axis])
    return {i for unit in units for i in unit}


def side(shape, layout):
    """{world rank: (coordinates, elements)} of all workers of the mesh."""
    extents = dict(layout["mesh"]["axes"])
    all_of = {}
    for at, rank in workers(layout["mesh"]):
        on = {axis: m["on"] for axis, m in layout.get("meaning", {}).items() if isinstance(m, dict)}
        holds = all(at[axis] == c for axis, c in on.items())
        each = [held(cover, n, at, extents) for cover, n in zip(layout["dims"], shape)]
        all_of[rank] = at, set(itertools.product(*each)) if holds else set()
    return all_of


def copied_axes(layout):
    """The axes along which equal things, or terms, are held side by side."""
    cut = {axis for cover in layout["dims"] for axis in axes_of(cover)}
    return {axis for axis, _ in layout["mesh"]["axes"]
            if axis not in cut and not isinstance(layout.get("meaning", {}).get(axis), dict)}


def same_mesh(a, b):
    return a["axes"] == b["axes"] and [r for _, r in workers(a)] == [r for _, r in workers(b)]


def faults(case, answer):
    """What is wrong with an answer, or nothing."""
    if "refused" in answer:
        return [f"is refused: {answer['refused']}"]
    found = []
    shape, size = case["shape"], case["element_bytes"]
    source, target = side(shape, case["from"]), side(shape, case["to"])
    nobody = {}, set()
    move = case["map"] == "move"
    aligned = same_mesh(case["from"]["mesh"], case["to"]["mesh"])
    lines = copied_axes(case["from"] if move else case["to"])
    travelled = {}  # of a Move what arrived at a rank, of a Fold what left it
    received = [0] * case["world"]
    for sender, receiver, box in answer["messages"]:
        name = f"{sender} -> {receiver} {box}"
        if sender == receiver:
            found.append(f"{name}: to itself")
        if not (sender in source and receiver in target):
            found.append(f"{name}: outside the mesh")
            continue
        elements = set(itertools.product(*(range(lo, hi) for lo, hi in box)))
        if not elements or len(box) != len(shape):
            found.append(f"{name}: no box")
        here, sends = source[sender]
        there, keeps = target[receiver]
        if not elements <= sends:
            found.append(f"{name}: the sender does not hold it")
        if not elements <= keeps:
            found.append(f"{name}: the receiver does not want it")
        if elements & (source.get(receiver, nobody) if move else target.get(sender, nobody))[1]:
            found.append(f"{name}: is there already")
        if aligned and any(here[axis] != there[axis] for axis in lines):
            found.append(f"{name}: not from the nearest copy")
        end = receiver if move else sender
        if elements & travelled.setdefault(end, set()):
            found.append(f"{name}: twice")
        travelled[end] |= elements
        received[receiver] += len(elements) * size
    bound = 0
    for rank, (_, wanted) in (target if move else source).items():
        needed = wanted - (source if move else target).get(rank, nobody)[1]
        bound += len(needed) * size
        missing = needed - travelled.get(rank, set())
        if missing:
            found.append(f"worker {rank} lacks {sorted(missing)[:3]}" if move else f"worker {rank} keeps {sorted(missing)[:3]}")
    if answer["bytes_received"] != received:
        found.append(f"bytes_received should be {received}")
    if answer["bytes_total"] != sum(received):
        found.append(f"bytes_total should be {sum(received)}")
    if answer["lower_bound"] != bound:
        found.append(f"lower_bound should be {bound}")
    for name, value in case.get("expected", {}).items():
        if answer.get(name) != value:
            found.append(f"{name} is {answer.get(name)}, expected {value}")
    return found
