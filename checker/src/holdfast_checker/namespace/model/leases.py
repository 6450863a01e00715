"""Model the operations of writers, and what ends their leases."""

from __future__ import annotations

from dataclasses import replace

from holdfast_checker.namespace.model.state import Path, State


def append(state: State, path: Path, writer: str) -> object:
    """Give the lease of a file to a writer."""
    node = state.file(path, "DirectoryInTheWayError")
    state.refuse_writer(node)
    state.nodes[path] = replace(node, writer=writer)
    return None


def publish(state: State, writer: str, mark: str, closes: bool) -> object:
    """Add content to the file of a writer, and end the lease if wanted."""
    path = state.held_by(writer)
    node = state.nodes[path]
    state.nodes[path] = replace(node, content=(node.content or "") + mark, writer="" if closes else writer)
    state.silent -= {writer}
    return None


def renew(state: State, writer: str) -> object:
    """Note that a writer is alive."""
    if writer in state.silent:
        state.held_by(writer)
        state.silent -= {writer}
    return None


def believe(state: State, writer: str) -> object:
    """Note that a writer, or an upload, has published something that a crash of the database has undone."""
    state.mistaken |= {writer}
    return None


def recover(state: State, path: Path) -> object:
    """End the lease of a file."""
    state.nodes[path] = replace(state.file(path), writer="")
    return True


def collect(state: State) -> object:
    """End the leases of silent writers."""
    for path, node in state.nodes.items():
        if node.writer in state.silent:
            state.nodes[path] = replace(node, writer="")
    return None


def later(state: State) -> object:
    """Make all writers silent: much time passes."""
    state.silent |= {node.writer for node in state.nodes.values() if node.writer}
    return None
