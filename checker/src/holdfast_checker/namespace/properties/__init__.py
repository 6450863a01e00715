"""Say what must hold for a namespace: N1 tree, N2 linearizable, N3 whole files, N5 counted, and nothing left over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast_checker.kernel.world import Property
from holdfast_checker.namespace.actors import Setting
from holdfast_checker.namespace.properties.leftovers import no_leftovers
from holdfast_checker.namespace.properties.n1_tree import is_tree
from holdfast_checker.namespace.properties.n2_linearizable import linearizable
from holdfast_checker.namespace.properties.n3_whole_files import whole_files
from holdfast_checker.namespace.properties.n5_counted import counted

__all__ = ["PROPERTIES"]

PROPERTIES: Mapping[str, Callable[[Setting], Property]] = {
    "N1": is_tree,
    "N2": linearizable,
    "N3": whole_files,
    "N5": counted,
    "leftovers": no_leftovers,
}
"""N4, one writer, is part of N2: the model knows who has a lease, and answers others as the namespace must."""
