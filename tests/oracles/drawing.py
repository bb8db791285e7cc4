"""Layout, communities, neighbourhoods and paths with every pair and every sum spelled out: the oracle of
`rust/core/src/graph/{layout,communities,neighbourhood,weighted}`.
"""

from __future__ import annotations

from math import sqrt

Rows = list[dict[int, float]]
"""For each node the weight of the edge to each neighbour, in both directions."""
NONE = 2**32 - 1


def weighted(nodes: int, edges: list[tuple[int, int, float]]) -> Rows:
    """The undirected graph of some (source, target, weight); ids of each row ascend."""
    rows: Rows = [{} for _ in range(nodes)]
    for a, b, weight in edges:
        if a != b:
            rows[a][b] = rows[a].get(b, 0.0) + weight
            rows[b][a] = rows[b].get(a, 0.0) + weight
    return [dict(sorted(row.items())) for row in rows]


def neighbourhood(rows: Rows, seeds: list[int], limit: int, hidden: set[int]) -> list[tuple[int, float, int]]:
    """(node, score, position of its parent): every round looks at every edge out of the nodes so far."""
    largest = max((weight for row in rows for weight in row.values()), default=1.0)
    found = [(seed, 1.0, NONE) for seed in dict.fromkeys(seeds) if seed not in hidden][:limit]
    while len(found) < limit:
        taken = {node for node, _, _ in found}
        best: dict[int, tuple[float, int]] = {}
        for position, (node, score, _) in enumerate(found):
            for other, weight in rows[node].items():
                if other in taken or other in hidden:
                    continue
                degree = len(rows[other])
                share = weight / largest / sqrt(len(rows[node])) * (degree / (degree + 1))
                if score * share > best.get(other, (0.0, 0))[0]:
                    best[other] = (score * share, position)
        if not best:
            break
        node = min(best, key=lambda other: (-best[other][0], other))
        found.append((node, *best[node]))
    return found


def shortest_path(rows: Rows, start: int, end: int) -> list[int]:
    """Rings around the start; the smallest node of a ring that reaches a node is the one before it."""
    before = {start: start}
    ring = [start]
    while end not in before and ring:
        fresh = {}
        for node in sorted(ring):
            for other in rows[node]:
                if other not in before and other not in fresh:
                    fresh[other] = node
        before |= fresh
        ring = list(fresh)
    if end not in before:
        return []
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def communities(rows: Rows, resolution: float = 1.0) -> list[int]:
    """Louvain's algorithm on dictionaries, then the components of each community."""
    total = 0.0
    for row in rows:
        for weight in row.values():
            total += weight
    labels = list(range(len(rows)))
    now, inside = rows, [0.0] * len(rows)
    for _ in range(32):
        own, moved = _moved(now, inside, total, resolution)
        if not moved:
            break
        labels = [own[label] for label in labels]
        now, inside = _joined(now, inside, own)
    return _components(rows, labels)


def _moved(rows: Rows, inside: list[float], total: float, resolution: float) -> tuple[list[int], bool]:
    strength = []
    for node, row in enumerate(rows):
        out = 0.0
        for weight in row.values():
            out += weight
        strength.append(out + inside[node])
    sums = list(strength)
    own = list(range(len(rows)))
    moved = False
    for _ in range(32):
        moves = 0
        for node, row in enumerate(rows):
            weights: dict[int, float] = {}
            for other, weight in row.items():
                weights[own[other]] = weights.get(own[other], 0.0) + weight
            here = own[node]
            sums[here] -= strength[node]

            def gain(label: int, weights: dict[int, float] = weights, node: int = node) -> float:
                return weights.get(label, 0.0) - resolution * strength[node] * sums[label] / total

            to, most = here, gain(here) + 1e-9 * strength[node] if row else 0.0
            for label in weights:
                gained = gain(label)
                if gained > most or (gained == most and label < to):
                    to, most = label, gained
            sums[to] += strength[node]
            own[node] = to
            moves += to != here
        moved |= moves > 0
        if not moves:
            break
    number: dict[int, int] = {}
    return [number.setdefault(label, len(number)) for label in own], moved


def _joined(rows: Rows, inside: list[float], own: list[int]) -> tuple[Rows, list[float]]:
    count = max(own, default=-1) + 1
    sums = [0.0] * count
    edges = []
    for node, row in enumerate(rows):
        sums[own[node]] += inside[node]
        for other, weight in row.items():
            if own[other] == own[node]:
                sums[own[node]] += weight
            elif node < other:
                edges.append((own[node], own[other], weight))
    return weighted(count, edges), sums


def _components(rows: Rows, labels: list[int]) -> list[int]:
    parts: list[list[int]] = []
    seen: set[int] = set()
    for start in range(len(rows)):
        if start in seen:
            continue
        part, stack = [], [start]
        seen.add(start)
        while stack:
            node = stack.pop()
            part.append(node)
            fresh = [other for other in rows[node] if labels[other] == labels[node] and other not in seen]
            seen |= set(fresh)
            stack += fresh
        parts.append(sorted(part))
    parts.sort(key=lambda part: (-len(part), part[0]))
    return [next(number for number, part in enumerate(parts) if node in part) for node in range(len(rows))]


SMALLEST, GROUP = 100, 4
DAMPING, GRAVITY, FIRST_LIMIT, SOFTENING = 0.5, 0.1, 0.1, 1e-9


def layout(rows: Rows, steps: int, seed: int) -> list[tuple[float, float]]:
    """The layout with repulsion summed over all pairs."""
    count = sum(len(row) for row in rows)
    mean = sum(weight / count for row in rows for weight in row.values())
    finest = [{to: min(max(w / mean, 0.2), 5.0) for to, w in row.items()} for row in rows]
    levels = [(finest, [1.0 + len(row) for row in rows], list[int]())]
    while len(levels) < 40 and len(levels[-1][0]) > SMALLEST:
        graph, mass, _ = levels[-1]
        parent = coarsen(graph)
        size = max(parent) + 1
        if size * 10 > len(mass) * 9:
            break
        edges = [(parent[a], parent[b], w) for a, row in enumerate(graph) for b, w in row.items() if a < b]
        sums = [0.0] * size
        for own, m in zip(parent, mass, strict=True):
            sums[own] += m
        levels[-1] = (graph, mass, parent)
        levels.append((weighted(size, edges), sums, []))
    xy: list[list[float]] = []
    for depth in range(len(levels) - 1, -1, -1):
        graph, mass, parent = levels[depth]
        if depth + 1 == len(levels):
            side = 2.0 * sqrt(sum(mass))
            xy = [[side * noise(seed, 2 * node + axis) for axis in (0, 1)] for node in range(len(graph))]
            _settle(graph, mass, xy, 4 * steps)
        else:
            own, above = seed ^ ((depth + 1) << 40), levels[depth + 1][1]
            xy = [
                [xy[to][axis] + sqrt(above[to]) * noise(own, 2 * node + axis) for axis in (0, 1)]
                for node, to in enumerate(parent)
            ]
            _settle(graph, mass, xy, steps)
    return _fitted(xy)


def noise(seed: int, key: int) -> float:
    """A number from -0.5 to 0.5: splitmix64."""
    most = 2**64 - 1
    z = (seed + (key + 1) * 0x9E3779B97F4A7C15) & most
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & most
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & most
    return ((z ^ (z >> 31)) >> 11) / 2**53 - 0.5


def coarsen(rows: Rows) -> list[int]:
    """The group of each node, numbered by smallest member."""
    group: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for node in sorted(range(len(rows)), key=lambda node: len(rows[node])):
        if node in group:
            continue
        size = {other: sizes[group[other]] if other in group else 1 for other in rows[node]}
        open_ones = [other for other in rows[node] if size[other] < GROUP]
        if not open_ones:
            continue
        other = min(open_ones, key=lambda other: (-rows[node][other] / size[other], other))
        own = group.setdefault(other, other)
        group[node] = own
        sizes[own] = sizes.get(own, 1) + 1
    rest: dict[int, list[int]] = {}
    for node in range(len(rows)):
        if node not in group:
            row = rows[node]
            best = min(row, key=lambda other: (-row[other], other)) if row else NONE
            rest.setdefault(best, []).append(node)
    for members in rest.values():
        for at, node in enumerate(members):
            group[node] = members[at - at % GROUP]
    number: dict[int, int] = {}
    return [number.setdefault(group[node], len(number)) for node in range(len(rows))]


def _settle(rows: Rows, mass: list[float], xy: list[list[float]], steps: int) -> None:
    n = len(rows)
    pull = [sum(row.values()) + GRAVITY * mass[node] for node, row in enumerate(rows)]
    for step in range(steps):
        spread = sqrt(sum(x * x + y * y for x, y in xy) / max(n, 1))
        limit = FIRST_LIMIT * spread * (1.0 - step / steps)
        moved = []
        for a, (x, y) in enumerate(xy):
            fx, fy = -GRAVITY * mass[a] * x, -GRAVITY * mass[a] * y
            for b, (px, py) in enumerate(xy):
                push = mass[a] * mass[b] / ((x - px) ** 2 + (y - py) ** 2 + SOFTENING)
                fx, fy = fx + push * (x - px), fy + push * (y - py)
            for b, weight in rows[a].items():
                fx, fy = fx + weight * (xy[b][0] - x), fy + weight * (xy[b][1] - y)
            dx, dy = DAMPING * fx / pull[a], DAMPING * fy / pull[a]
            far = sqrt(dx * dx + dy * dy)
            part = limit / far if far > limit else 1.0
            moved.append([x + part * dx, y + part * dy])
        xy[:] = moved


def _fitted(xy: list[list[float]]) -> list[tuple[float, float]]:
    if not xy:
        return []
    bounds = [(min(p[axis] for p in xy), max(p[axis] for p in xy)) for axis in (0, 1)]
    half = max(high - low for low, high in bounds) / 2
    scale = 1 / half if half > 0 else 0.0
    x, y = ([(p[axis] - sum(bounds[axis]) / 2) * scale for p in xy] for axis in (0, 1))
    return list(zip(x, y, strict=True))
