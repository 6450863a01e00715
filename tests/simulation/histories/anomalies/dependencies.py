"""Build the graph of transactions that must precede others, and find its shortest cycles, for `serializable`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from holdfast.errors import InvalidRequestError
from holdfast_checker.histories.history import Outcome
from tests.simulation.histories.anomalies.transactions import Anomaly, Level, Read, Transaction, Versions, Write

_RT = "had ended before T{other} began"


@dataclass(slots=True)
class Dependencies:
    """The graph: which transactions must precede which, and why. Add all edges before searching for cycles.

    Args:
        settled: whether `versions` is final; False while transactions are still running.
    """

    all: list[Transaction]
    versions: Mapping[str, Versions]
    settled: bool = True
    found: list[Anomaly] = field(default_factory=list)
    writers: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    final: dict[tuple[int, str], Hashable] = field(default_factory=dict)
    to_come: dict[str, list[Hashable]] = field(default_factory=dict)  # by key, versions that are not installed yet
    edges: dict[int, dict[int, dict[str, str]]] = field(default_factory=dict)  # from, to, kind: why

    def __post_init__(self) -> None:
        for number, transaction in enumerate(self.all):
            for action in transaction.actions:
                if isinstance(action, Write):
                    if self.writers.setdefault((action.key, action.version), number) != number:
                        raise InvalidRequestError(
                            "two transactions wrote the same version: give every write one of its own",
                            key=action.key,
                            version=action.version,
                        )
                    self.final[number, action.key] = action.version
        installed = self._installed()
        there = {self.writers[place] for place in installed if place in self.writers}
        for number in sorted(self._committed(there)):
            self.edges[number] = {}
        for number in sorted(there):
            if self.all[number].operation.outcome is Outcome.FAILED:
                self.note("aborted write", "was reported as failed, and installed a version", number)
        for number in self.edges:
            self._look_at_writes(number, installed)

    def _installed(self) -> dict[tuple[str, Hashable], int]:
        """Map the installed versions to their positions in their key's order; report impossible versions."""
        found = {(key, one): len(them.order) for key, them in self.versions.items() for one in them.rest}
        for key, them in self.versions.items():
            for place, one in enumerate(them.order):
                if (key, one) in found:
                    self._tell_of_version(key, one, "is installed twice")
                elif place and (key, one) not in self.writers:
                    self._tell_of_version(key, one, "is installed, and no transaction wrote it")
                found[key, one] = place
        return found

    def _tell_of_version(self, key: str, version: Hashable, words: str) -> None:
        name = "unwritten version" if (key, version) not in self.writers else "version twice"
        writer = self.writers.get((key, version))
        them = () if writer is None else (self.all[writer],)
        self.found.append(Anomaly(name, f"{name}: {key}={version!r} {words}", them))

    def _committed(self, there: set[int]) -> set[int]:
        """Return the transactions that committed.

        An acknowledged transaction has committed. A transaction of unknown outcome has committed if one of its writes
        is installed or, while more versions may be installed, if a committed transaction has read one of its writes.
        """
        outcomes = [one.operation.outcome for one in self.all]
        found = {number for number, outcome in enumerate(outcomes) if outcome is Outcome.OK}
        found |= {number for number in there if outcomes[number] is Outcome.UNKNOWN}
        to_ask = [] if self.settled else list(found)
        while to_ask:
            for action in self.all[to_ask.pop()].actions:
                writer = self.writers.get((action.key, action.version))
                if writer is not None and writer not in found and outcomes[writer] is Outcome.UNKNOWN:
                    found.add(writer)
                    to_ask.append(writer)
        return found

    def _look_at_writes(self, number: int, installed: Mapping[tuple[str, Hashable], int]) -> None:
        """Check that all writes of a committed transaction are installed, except those that it overwrote itself."""
        transaction = self.all[number]
        is_open = transaction.operation.outcome is Outcome.UNKNOWN
        places: dict[str, int] = {}
        for action in transaction.actions:
            key, version = action.key, action.version
            if not isinstance(action, Write):
                continue
            place = installed.get((key, version))
            if place is not None:
                if place < places.setdefault(key, place):
                    words = f"wrote {key}={version!r} after a version that was installed later"
                    self.note("incompatible order", words, number)
                places[key] = place
            elif self.final[number, key] == version:
                if is_open:
                    self.to_come.setdefault(key, []).append(version)
                if self.settled or not is_open:
                    how = "shown by another of its writes" if is_open else "acknowledged"
                    words = f"committed, as {how}, and {key}={version!r} was never installed"
                    self.note("missing write", words, number)

    def note(self, name: str, words: str, *numbers: int) -> None:
        them = tuple(self.all[number] for number in numbers)
        self.found.append(Anomaly(name, f"{name}: {them[0]} {words}", them))

    def add(self, one: int | None, other: int | None, kind: str, why: str) -> None:
        """Add an edge between two committed transactions; None stands for the initial version."""
        if one is not None and one in self.edges and other is not None and other in self.edges and one != other:
            self.edges[one].setdefault(other, {}).setdefault(kind, why)

    # --- edges --------------------------------------------------------------------------------------------------------
    def add_dependencies(self) -> None:
        readers: dict[tuple[str, Hashable], list[int]] = {}
        for number in self.edges:
            for read in self._outside_reads(number):
                readers.setdefault((read.key, read.version), []).append(number)
                self._add_read(number, read)
        for (key, version), them in readers.items():
            losers = [number for number in them if (number, key) in self.final]
            if len(losers) > 1:
                other = self.all[losers[1]]
                words = f"and {other} have both read {key}={version!r} and overwritten it"
                self.note("lost update", words, *losers[:2])
        for key, versions in self.versions.items():
            order = [one for one in versions.order if self._is_there(key, one)]
            later = (*versions.rest, *self.to_come.get(key, ()))
            pairs = [*pairwise(order), *((one, rest) for one in order[-1:] for rest in later)]
            for before, after in pairs:
                why = f"overwrote {key}={before!r} with {after!r}"
                writer, overwriter = self.writers.get((key, before)), self.writers.get((key, after))
                self.add(writer, overwriter, "ww", f"installed {key}={before!r}, and T{{other}} {why}")
                for reader in readers.get((key, before), []):
                    self.add(reader, overwriter, "rw", f"read {key}={before!r}, and T{{other}} {why}")

    def _is_there(self, key: str, version: Hashable) -> bool:
        """Check that a version is not from a failed transaction, which has no place in the order of transactions."""
        writer = self.writers.get((key, version))
        return writer is None or writer in self.edges

    def _outside_reads(self, number: int) -> Iterator[Read]:
        """Yield the first read of each key that the transaction had not written; report contradictory reads."""
        own: dict[str, Hashable] = {}
        for action in self.all[number].actions:
            if isinstance(action, Write) or action.key not in own:
                own[action.key] = action.version
                if isinstance(action, Read):
                    yield action
            elif own[action.key] != action.version:
                had = f"after it had read or written {own[action.key]!r}"
                self.note("internal", f"read {action.key}={action.version!r} {had}", number)

    def _add_read(self, number: int, read: Read) -> None:
        key, version = read.key, read.version
        writer = self.writers.get((key, version))
        if writer is None:
            if version not in self.versions.get(key, Versions(())).order:
                self.note("unwritten read", f"read {key}={version!r}, which no transaction wrote", number)
            return
        if writer == number:
            self.note("internal", f"read {key}={version!r} before it had written it", number)
        elif writer not in self.edges:
            self.note("G1a", f"read {key}={version!r} of {self.all[writer]}, which did not commit", number, writer)
        elif self.final[writer, key] != version:
            self.note("G1b", f"read {key}={version!r}, which {self.all[writer]} overwrote itself", number, writer)
        self.add(writer, number, "wr", f"installed {key}={version!r}, which T{{other}} read")

    def add_real_time(self) -> None:
        """Add an edge between two transactions if one had ended before the other began, with no third one in between.

        Leaving out the edges around a third transaction keeps the graph small, however long the history is.
        """
        spans = {number: self.all[number].operation for number in self.edges}
        ended = sorted((one.ended, number) for number, one in spans.items() if one.ended is not None)
        ends = [end for end, _number in ended]
        # Item n: the latest start among the first n transactions that ended.
        begun = [-1, *accumulate((spans[number].invoked for _end, number in ended), max)]
        for other, operation in spans.items():
            before = bisect_left(ends, operation.invoked)
            for _end, one in ended[bisect_left(ends, begun[before]) : before]:
                self.add(one, other, "rt", _RT)

    # --- cycles -------------------------------------------------------------------------------------------------------
    def cycles(self, level: Level, more: tuple[str, ...]) -> list[Anomaly]:
        """Return the shortest cycle for each kind of anomaly.

        Edges are Adya's (ww, wr, rw) and those of the kinds in `more`.
        """
        found: dict[str, Anomaly] = {}
        forward = frozenset(("ww", "wr", *more))
        searches = [("ww", frozenset(("ww", *more)), 0), ("wr", forward, 0), *((kind, forward, 0) for kind in more)]
        searches += [("rw", forward | {"rw"}, 1), ("rw", forward | {"rw"}, 2)]
        if level is Level.SERIALIZABLE:
            searches.append(("rw", forward | {"rw"}, 3))
        for kind, kinds, rule in searches:
            cycle = self._shortest(kind, kinds, rule)
            # A path that visits a node twice is two cycles; the worse of them was found before, or is shorter.
            if cycle is not None and len({node for node, _kind in cycle}) == len(cycle):
                anomaly = self._tell(cycle)
                found.setdefault(anomaly.name, anomaly)
        return list(found.values())

    def _shortest(self, kind: str, kinds: frozenset[str], rule: int) -> list[tuple[int, str]] | None:
        """Return the shortest cycle of edges in `kinds` that has an edge of `kind`, as pairs (from, kind of the edge).

        Args:
            rule: how many further rw edges the cycle has: 0 and 1 mean none; 2 means one or more, no two of them
                adjacent; 3 means one or more.
        """
        component = self._components(kinds)
        best: list[tuple[int, str]] | None = None
        for one, targets in self.edges.items():
            for other, why in targets.items():
                if kind in why and component[one] == component[other]:
                    path = self._path(other, one, kind, kinds, rule, component)
                    if path is not None and (best is None or len(path) + 1 < len(best)):
                        best = [(one, kind), *path]
        return best

    def _path(
        self, start: int, goal: int, kind: str, kinds: frozenset[str], rule: int, component: Mapping[int, int]
    ) -> list[tuple[int, str]] | None:
        """Return the shortest path that closes a cycle whose first edge is of `kind`."""
        first = (start, kind == "rw", False)  # node, whether the last edge was rw, whether there was another rw
        came: dict[tuple[int, bool, bool], tuple[tuple[int, bool, bool], str] | None] = {first: None}
        queue = deque([first])
        while queue:
            at = queue.popleft()
            node, last, more = at
            if node == goal and (rule < 2 or more) and not (rule == 2 and last):
                path: list[tuple[int, str]] = []
                step = came[at]
                while step is not None:
                    path.append((step[0][0], step[1]))
                    step = came[step[0]]
                return path[::-1]
            for target, whys in self.edges[node].items():
                if component[target] != component[node]:
                    continue
                for each in whys:
                    if each not in kinds or (each == "rw" and (rule < 2 or (rule == 2 and last))):
                        continue
                    to = (target, each == "rw", more or each == "rw")
                    if to not in came:
                        came[to] = (at, each)
                        queue.append(to)
        return None

    def _components(self, kinds: frozenset[str]) -> dict[int, int]:
        """Return the strongly connected components, by Tarjan's algorithm: every cycle is inside of one."""
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        component: dict[int, int] = {}
        open_: list[int] = []
        for root in self.edges:
            work = [] if root in index else [(root, iter(self._targets(root, kinds)))]
            while work:
                node, targets = work[-1]
                if node not in index:
                    index[node] = low[node] = len(index)
                    open_.append(node)
                for target in targets:
                    if target not in index:
                        work.append((target, iter(self._targets(target, kinds))))
                        break
                    if target not in component:
                        low[node] = min(low[node], index[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        while node not in component:
                            component[open_.pop()] = node
        return component

    def _targets(self, node: int, kinds: frozenset[str]) -> list[int]:
        return [target for target, why in self.edges[node].items() if not kinds.isdisjoint(why)]

    def _tell(self, cycle: list[tuple[int, str]]) -> Anomaly:
        # If A had ended before B began, and B before C, then A before C.
        cycle = [
            step for before, step in zip((cycle[-1], *cycle), cycle, strict=False) if before[1] + step[1] != "rtrt"
        ]
        nodes = [node for node, _kind in cycle]
        named = {node: f"T{number}" for number, node in enumerate(nodes, start=1)}
        steps = []
        for (node, kind), (after, _kind) in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            why = (_RT if kind == "rt" else self.edges[node][after][kind]).replace("T{other}", named[after])
            steps.append(f"{named[node]} < {named[after]}, because {named[node]} {why}")
        name = _name([kind for _node, kind in cycle])
        who = "; ".join(f"{named[node]} = {self.all[node]}" for node in nodes)
        told = "; ".join(steps[:-1]) + f"; however, {steps[-1]}: a contradiction"
        return Anomaly(name, f"{name}: let {who}. Then {told}", tuple(self.all[node] for node in nodes))


def _name(kinds: list[str]) -> str:
    count = Counter(kinds)
    adjacent = any(pair == ("rw", "rw") for pair in zip(kinds, (*kinds[1:], kinds[0]), strict=True))
    if count["rw"]:
        found = "G-single" if count["rw"] == 1 else "G2-item" if adjacent else "G-nonadjacent"
    else:
        found = "G1c" if count["wr"] else "G0"
    return f"{found}-realtime" if count["rt"] else found
