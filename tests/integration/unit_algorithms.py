"""Three algorithms whose steps are units that find each other work, and for each what it must come to.

The answers come from other algorithms, in plain Python. Spark's processes import this module.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = [
    "Edges",
    "MaximumFlow",
    "PageRank",
    "SpanningTree",
    "largest_flow",
    "lightest_tree",
    "ranks_by_iteration",
    "reachable",
    "some_links",
    "some_weights",
    "washington_rlg",
]

Edges = Mapping[tuple[int, int], int]
"""A number for each edge."""


# --- maximum flow -----------------------------------------------------------------------------------------------------
def washington_rlg(rows: int, columns: int, most: int = 100, seed: int = 3) -> Edges:
    """Return the capacities of a random level graph, from vertex 0 to the last one.

    Source: the first DIMACS implementation challenge, function 2 of the generator ``washington``.
    """
    chance = random.Random(seed)
    last = rows * columns + 1

    def vertex(level: int, row: int) -> int:
        return 1 + level * rows + row

    edges = {(0, vertex(0, row)): 3 * most for row in range(rows)}
    edges |= {(vertex(columns - 1, row), last): 3 * most for row in range(rows)}
    for level in range(columns - 1):
        for row in range(rows):
            for other in chance.sample(range(rows), 3):
                edges[vertex(level, row), vertex(level + 1, other)] = chance.randint(1, most)
    return edges


@dataclass(frozen=True)
class MaximumFlow:
    """Push and relabel: a unit discharges a vertex.

    Tables: ``excess`` and ``height`` of vertices, ``residual`` capacities of edges in both directions.

    Source: Goldberg and Tarjan, "A new approach to the maximum-flow problem" (1988).
    """

    near: Mapping[int, Sequence[int]]
    source: int
    sink: int

    @staticmethod
    def of(edges: Edges) -> MaximumFlow:
        """Return the steps for a graph whose first vertex is the source, and whose last is the sink."""
        near: dict[int, list[int]] = {}
        for one, other in edges:
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
        return MaximumFlow(near, 0, max(near))

    def begin(self, txn: Any, edges: Edges) -> list[int]:
        """Fill the tables: what can leave the source has left it. Return the vertices that have work."""
        residual = {(one, other): edges.get((one, other), 0) for one, near in self.near.items() for other in near}
        excess = dict.fromkeys(self.near, 0)
        for other in self.near[self.source]:
            pushed = residual[self.source, other]
            residual[self.source, other] -= pushed
            residual[other, self.source] += pushed
            excess[other] += pushed
            excess[self.source] -= pushed
        for edge, left in residual.items():
            txn.put("residual", edge, left)
        for vertex in self.near:
            txn.put("excess", vertex, excess[vertex])
            txn.put("height", vertex, len(self.near) if vertex == self.source else 0)
        return [vertex for vertex in self.near if excess[vertex] > 0 and vertex != self.sink]

    def __call__(self, txn: Any, vertex: int, _value: object) -> None:
        """Push everything out of a vertex; lift it where that is needed."""
        left = txn.get("excess", vertex)
        near = self.near[vertex]
        heights = txn.get_many("height", near)
        residual = {other: txn.get("residual", (vertex, other)) for other in near}
        height = txn.get("height", vertex)
        while left:
            for other in near:
                pushed = min(left, residual[other]) if height == heights[other] + 1 else 0
                if pushed:
                    left -= pushed
                    residual[other] -= pushed
                    txn.add("residual", (vertex, other), -pushed)
                    txn.add("residual", (other, vertex), pushed)
                    txn.add("excess", vertex, -pushed)
                    txn.add("excess", other, pushed)
                    if other not in (self.source, self.sink):
                        txn.emit(other, priority=heights[other])
            if left:
                height = 1 + min(heights[other] for other in near if residual[other])
        txn.put("height", vertex, height)


def largest_flow(edges: Edges, source: int, sink: int) -> int:
    """Return the value of a maximum flow: by shortest augmenting paths.

    Source: Edmonds and Karp, "Theoretical improvements in algorithmic efficiency for network flow problems" (1972).
    """
    residual = {edge: 0 for one, other in edges for edge in ((one, other), (other, one))} | dict(edges)
    total = 0
    while True:
        before = reachable(residual, source)
        if sink not in before:
            return total
        path = [sink]
        while path[-1] != source:
            path.append(before[path[-1]])
        steps = [(one, other) for other, one in pairwise(path)]
        pushed = min(residual[step] for step in steps)
        for one, other in steps:
            residual[one, other] -= pushed
            residual[other, one] += pushed
        total += pushed


def reachable(residual: Edges, source: int) -> dict[int, int]:
    """Return where one comes along edges with a positive number, each vertex with the one before it."""
    near: dict[int, list[int]] = {}
    for (one, other), left in residual.items():
        if left > 0:
            near.setdefault(one, []).append(other)
    before = {source: source}
    queue = deque(before)
    while queue:
        one = queue.popleft()
        for other in near.get(one, ()):
            if other not in before:
                before[other] = one
                queue.append(other)
    return before


# --- minimum spanning tree --------------------------------------------------------------------------------------------
def some_weights(vertices: int, edges: int, seed: int = 5) -> Edges:
    """Return a connected graph whose weights all differ."""
    chance = random.Random(seed)
    found = {(chance.randrange(vertex), vertex) for vertex in range(1, vertices)}
    while len(found) < edges:
        one, other = sorted(chance.sample(range(vertices), 2))
        found.add((one, other))
    return dict(zip(sorted(found), chance.sample(range(1, 100 * edges), len(found)), strict=True))


@dataclass(frozen=True)
class SpanningTree:
    """Boruvka's algorithm: a unit joins a component to the one at the other end of its lightest edge.

    Tables: ``member`` has the rows (component, vertex), ``component`` that of each vertex, ``tree`` the edges that were
    chosen, ``weight`` their sum in one cell.
    """

    edges: Edges

    def begin(self, txn: Any) -> list[int]:
        """Fill the tables: each vertex is a component. Return the components."""
        vertices = sorted({vertex for edge in self.edges for vertex in edge})
        for vertex in vertices:
            txn.put("member", (vertex, vertex), True)
            txn.put("component", vertex, vertex)
        return vertices

    def __call__(self, txn: Any, component: int, _value: object) -> None:
        """Join a component, if it still is one."""
        members = {row[1] for row, _columns in txn.scan("member", prefix=(component,))}
        leaving = [(weight, edge) for edge, weight in self.edges.items() if len(members.intersection(edge)) == 1]
        if not leaving:
            return
        weight, edge = min(leaving)
        [there] = set(edge) - members
        other = txn.get("component", there)
        for member in members:
            txn.delete("member", (component, member))
            txn.put("member", (other, member), True)
            txn.put("component", member, other)
        txn.put("tree", edge, weight)
        txn.add("weight", "sum", weight)
        txn.emit(other)


def lightest_tree(edges: Edges) -> Edges:
    """Return the minimum spanning tree: edges in the order of their weights, unless they close a circle.

    Source: Kruskal, "On the shortest spanning subtree of a graph and the traveling salesman problem" (1956).
    """
    parent: dict[int, int] = {}

    def root(vertex: int) -> int:
        while vertex in parent:
            vertex = parent[vertex]
        return vertex

    tree: dict[tuple[int, int], int] = {}
    for edge, weight in sorted(edges.items(), key=lambda one: one[1]):
        one, other = map(root, edge)
        if one != other:
            parent[one] = other
            tree[edge] = weight
    return tree


# --- PageRank ---------------------------------------------------------------------------------------------------------
def some_links(pages: int, most: int = 6, seed: int = 7) -> Mapping[int, Sequence[int]]:
    """Return the links of each page; a few pages are linked from many others."""
    chance = random.Random(seed)
    found: dict[int, Sequence[int]] = {}
    for page in range(pages):
        linked = {int(pages * chance.random() ** 3) for _ in range(chance.randint(1, most))} - {page}
        found[page] = sorted(linked or {(page + 1) % pages})
    return found


_DAMPING = 85  # percent


@dataclass(frozen=True)
class PageRank:
    """PageRank by pushing: a unit keeps a part of what came to a page, and passes the rest on to those it links to.

    All are integers, so that the loss of the smallest part shows. Tables: ``rank``, and what is ``left`` to pass on.

    Source: Andersen, Chung and Lang, "Local graph partitioning using PageRank vectors" (2006).
    """

    links: Mapping[int, Sequence[int]]
    each: int = 2**30
    enough: int = 2**21
    """As little as that is not passed on."""

    @property
    def error(self) -> float:
        """How far the ranks may be from the right ones, altogether."""
        return len(self.links) * self.enough / self.each / (1 - _DAMPING / 100)

    def begin(self, txn: Any) -> list[int]:
        """Fill the tables. Return the pages."""
        for page in self.links:
            txn.put("rank", page, 0)
            txn.put("left", page, self.each)
        return list(self.links)

    def __call__(self, txn: Any, page: int, _value: object) -> None:
        """Pass on what has come to a page."""
        left = txn.get("left", page)
        if left <= self.enough:
            return
        links = self.links[page]
        part = left * _DAMPING // 100 // len(links)
        txn.add("rank", page, left - part * len(links))
        txn.put("left", page, 0)
        for other in links:
            before = txn.get("left", other)
            txn.add("left", other, part)
            if before <= self.enough < before + part:
                txn.emit(other)


def ranks_by_iteration(links: Mapping[int, Sequence[int]], rounds: int = 200) -> dict[int, float]:
    """Return the rank of each page, on average 1: by power iteration."""
    ranks = dict.fromkeys(links, 1.0)
    for _ in range(rounds):
        now = dict.fromkeys(links, 1 - _DAMPING / 100)
        for page, linked in links.items():
            for other in linked:
                now[other] += ranks[page] * _DAMPING / 100 / len(linked)
        ranks = now
    return ranks
