r"""Graphs of tasks: reading them, building them, and what they mean for the model.

A graph is a symmetric matrix A of weights >= 0 with a row per task. Its Laplacian is L = D - A with D the row sums, and

.. math:: \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t = \tfrac12 \sum_{s<t} A_{st} \lVert w_s - w_t \rVert^2 .
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.csgraph import shortest_path

from ..messages import value_error
from ..tasks import read_graph


def complete_graph(n_tasks: int, weight: float = 1.0) -> np.ndarray:
    """Every task beside every other.

    Parameters
    ----------
    n_tasks : int
    weight : float, default=1.0
        Total weight of the edges of one task: each edge has ``weight / n_tasks``, so that the coupling is
        ``weight / 2`` times the sum of squared distances to the mean task, whatever the number of tasks.

    Returns
    -------
    ndarray of shape (n_tasks, n_tasks)

    Examples
    --------
    >>> from tasksieve.graph import complete_graph
    >>> complete_graph(2)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    if n_tasks < 1:
        raise ValueError(f"n_tasks must be >= 1, got {n_tasks!r}.")
    if not weight >= 0:
        raise ValueError(f"weight must be >= 0, got {weight!r}.")
    graph = np.full((n_tasks, n_tasks), float(weight) / n_tasks)
    np.fill_diagonal(graph, 0.0)
    return graph


def tree_graph(tree: Any, *, inner: bool = False) -> tuple[np.ndarray, list[Any]]:
    """A tree of tasks: Newick text, or the parent of every node.

    Parameters
    ----------
    tree : str, mapping, or sequence of int
        Newick text such as ``"((human:1,chimp:1):2,mouse:6);"``; or a mapping from node to parent (the root's parent is
        None); or a sequence in which entry k is the parent of node k (-1: the root).
    inner : bool, default=False
        True: the inner nodes are tasks too (without rows, as a rule), and the edges of the tree are the edges of the
        graph, each with weight 1 / length (lengths that are not given, or 0, count 1). False: the leaves alone are
        tasks, and two leaves are joined by 1 / (length of the path between them).

    Returns
    -------
    graph : ndarray of shape (T, T)
    tasks : list
        The name of each row, for ``graph_tasks``; inner nodes without a name are called "inner 0", "inner 1", ...

    Examples
    --------
    >>> from tasksieve.graph import tree_graph
    >>> graph, tasks = tree_graph("((human:1,chimp:1):2,mouse:6);")
    >>> tasks
    ['human', 'chimp', 'mouse']
    >>> graph.round(3)
    array([[0.   , 0.5  , 0.111],
           [0.5  , 0.   , 0.111],
           [0.111, 0.111, 0.   ]])
    """
    if isinstance(tree, str):
        names, parents, lengths = _read_newick(tree)
    else:
        names, parents = _read_parents(tree)
        lengths = [1.0] * len(names)
    edges = np.zeros((len(names), len(names)))
    for node, parent in enumerate(parents):
        if parent >= 0:
            edges[node, parent] = edges[parent, node] = lengths[node]
    distances = shortest_path(edges, directed=False)
    if np.isinf(distances).any():
        raise ValueError("The parents of tree run in a circle: one node has to be the root.")
    leaves = [node for node in range(len(names)) if node not in parents]
    joined = edges if inner else distances[np.ix_(leaves, leaves)]
    graph = np.divide(1.0, joined, out=np.zeros_like(joined), where=joined > 0)
    return graph, names if inner else [names[leaf] for leaf in leaves]


def _read_parents(tree: Any) -> tuple[list[Any], list[int]]:
    if isinstance(tree, Mapping):
        names = list(tree)
        names += [
            parent for parent in dict.fromkeys(tree.values()) if parent is not None and parent not in tree
        ]
        position = {name: k for k, name in enumerate(names)}
        parents = [-1 if tree.get(name) is None else position[tree[name]] for name in names]
    else:
        parents = [int(parent) for parent in np.asarray(tree).ravel()]
        names = list(range(len(parents)))
        wrong = [
            k for k, parent in enumerate(parents) if parent >= len(parents) or parent < -1 or parent == k
        ]
        if wrong:
            raise ValueError(
                f"tree: node {wrong[0]} has the parent {parents[wrong[0]]}, which is no other node."
            )
    if not names:
        raise ValueError("tree has no nodes.")
    roots = sum(parent < 0 for parent in parents)
    if roots != 1:
        raise ValueError(f"tree must have exactly one root, it has {roots}.")
    return names, parents


def _read_newick(text: str) -> tuple[list[Any], list[int], list[float]]:
    """Nodes of a Newick tree: name, parent and length of the edge to it."""
    text = re.sub(r"\[[^\]]*\]", "", text.strip())
    if not text.endswith(";"):
        raise ValueError("tree: Newick text ends with a semicolon, as in '((a:1,b:1):2,c:3);'.")
    tokens = re.findall(r"'(?:[^']|'')*'|[(),:;]|[^\s'(),:;]+", text)
    names: list[Any] = []
    parents: list[int] = []
    lengths: list[float] = []

    def new(parent: int) -> int:
        names.append(None)
        parents.append(parent)
        lengths.append(1.0)
        return len(names) - 1

    node, depth, k = new(-1), 0, 0
    while k < len(tokens):
        token = tokens[k]
        if token == "(":
            node, depth = new(node), depth + 1
        elif token == ",":
            if depth == 0:
                raise ValueError("tree: Newick text has a comma outside its parentheses.")
            node = new(parents[node])
        elif token == ")":
            if depth == 0:
                raise ValueError("tree: Newick text closes a parenthesis that was not opened.")
            node, depth = parents[node], depth - 1
        elif token == ":":
            k += 1
            try:
                length = float(tokens[k])
            except (IndexError, ValueError):
                raise ValueError("tree: Newick text has a colon that no length follows.") from None
            if not 0 <= length < np.inf:
                raise ValueError(f"tree: the length {length} of a branch is not a number >= 0.")
            lengths[node] = length or 1.0
        elif token == ";":
            break
        else:
            names[node] = token[1:-1].replace("''", "'") if token.startswith("'") else token
        k += 1
    if depth:
        raise ValueError("tree: Newick text leaves a parenthesis open.")
    inner = 0
    for node, name in enumerate(names):
        if name is None:
            if node not in parents:
                raise ValueError("tree: a leaf of the Newick text has no name.")
            names[node] = f"inner {inner}"
            inner += 1
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"tree: the name {twice!r} stands twice in the Newick text.")
    return names, parents, lengths


def nearest_neighbor_graph(descriptors: Any, n_neighbors: int = 3) -> np.ndarray:
    """Tasks joined to those with the most similar descriptors.

    Parameters
    ----------
    descriptors : array of shape (T, q)
        What is known of each task: coordinates, age, sequence statistics, ...
    n_neighbors : int, default=3

    Returns
    -------
    ndarray of shape (T, T)
        1 where one of two tasks is among the ``n_neighbors`` nearest of the other.
    """
    points = np.asarray(descriptors, dtype=np.float64)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or not np.all(np.isfinite(points)):
        raise ValueError("descriptors must be a finite array of shape (T, q), a row per task.")
    if not 1 <= n_neighbors < max(len(points), 2):
        raise ValueError(f"n_neighbors must be between 1 and T - 1 = {len(points) - 1}, got {n_neighbors!r}.")
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    graph = np.zeros_like(distances)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    np.put_along_axis(graph, nearest, 1.0, axis=1)
    np.fill_diagonal(graph, 0.0)
    return np.maximum(graph, graph.T)


def distance_graph(distances: Any, scale: float | None = None) -> np.ndarray:
    """Weights that fall with distance, A_st = exp(-(distance / scale)²).

    Parameters
    ----------
    distances : array of shape (T, T)
        Symmetric, >= 0; infinite where two tasks have nothing to do with each other.
    scale : float, optional
        By default the median finite distance between two tasks.

    Returns
    -------
    ndarray of shape (T, T)
    """
    between = np.asarray(distances, dtype=np.float64)
    if between.ndim != 2 or between.shape[0] != between.shape[1]:
        raise ValueError(f"distances must be square, got shape {between.shape}.")
    if np.isnan(between).any() or (between < 0).any() or not np.array_equal(between, between.T):
        raise ValueError("distances must be symmetric numbers >= 0 (infinity: no edge).")
    pairs = between[np.triu_indices(len(between), 1)]
    finite = pairs[np.isfinite(pairs)]
    if scale is None:
        scale = float(np.median(finite)) if finite.size and np.median(finite) > 0 else 1.0
    if not scale > 0:
        raise ValueError(f"scale must be > 0, got {scale!r}.")
    graph = np.exp(-((between / scale) ** 2))
    np.fill_diagonal(graph, 0.0)
    return graph


def task_similarity(graph: Any, graph_strength: float = 1.0) -> np.ndarray:
    r"""M = (I + graph_strength L)^{-1}: how much task t borrows from task s.

    Its entries are >= 0 and its rows sum to 1: :math:`w_t = \sum_s m_{ts} v_s`, where :math:`v_s` is what the rows of
    task s alone have to say.

    Parameters
    ----------
    graph : T x T array or sparse matrix, or networkx graph
    graph_strength : float, default=1.0

    Returns
    -------
    ndarray of shape (T, T)
    """
    return similarity_of(read_graph(graph)[0], graph_strength)[1]


def similarity_of(weights: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """I + strength L and its inverse."""
    with np.errstate(over="ignore", invalid="ignore"):
        coupling = np.eye(len(weights)) + strength * (np.diag(weights.sum(axis=1)) - weights)
    try:
        inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(coupling), np.eye(len(weights)))
    except (ValueError, scipy.linalg.LinAlgError) as error:
        raise value_error(
            "{graph_strength} = {strength:g} times the weights of {graph} (up to {largest:g}) is beyond what "
            "double precision can invert: lower {graph_strength}.",
            strength=strength,
            largest=weights.max(),
        ) from error
    inverse = (inverse + inverse.T) / 2
    return coupling, np.ascontiguousarray(np.where(inverse > 0, inverse, 0.0))
