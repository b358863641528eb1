"""A tree of tasks, and who borrows from whom: the rows of M = (I + L)^-1."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from tasksieve.graph import task_similarity, tree_graph

TREE = "(((a:1,b:1):1,(c:1,d:1):1):2,((e:1,f:1):2,(g:2,h:2):1):1);"
STRENGTHS = (0.3, 3.0, 30.0)
BLUE = "#2a6fbb"


def graph_figure() -> Figure:
    """The tree on the left, M for three strengths of the graph on the right."""
    graph, tasks = tree_graph(TREE)
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.1), width_ratios=[1.2, 1, 1, 1], layout="constrained")
    draw_tree(axes[0], TREE)
    largest = 1.0
    for axis, strength in zip(axes[1:], STRENGTHS, strict=True):
        M = task_similarity(graph, strength)
        image = axis.imshow(M, cmap="Blues", vmin=0, vmax=largest)
        axis.set_xticks(range(len(tasks)), tasks)
        axis.set_yticks(range(len(tasks)), tasks)
        axis.set_title(f"graph_strength = {strength:g}", fontsize=10)
        axis.tick_params(length=0)
    axes[1].set_ylabel("task")
    axes[2].set_xlabel("borrows from")
    figure.colorbar(image, ax=axes[1:], shrink=0.85, label="$m_{ts}$")
    return figure


def draw_tree(axis: plt.Axes, newick: str) -> None:
    """Branches to the right, as long as they are; leaves one below the other."""
    _, nodes = tree_graph(newick, inner=True)
    lengths, _ = tree_graph(newick, inner=True)
    leaves = tree_graph(newick)[1]
    position: dict[int, tuple[float, float]] = {}

    def walk(node: int, parent: int, x: float) -> float:
        children = [k for k in np.flatnonzero(lengths[node]) if k != parent]
        if children:
            heights = [walk(int(k), node, x + 1 / lengths[node, k]) for k in children]
            y = float(np.mean(heights))
        else:
            y = float(leaves.index(nodes[node]))
        position[node] = (x, y)
        for k in children:
            child_x, child_y = position[int(k)]
            axis.plot([x, x, child_x], [y, child_y, child_y], color=BLUE, lw=1.5)
        return y

    walk(0, -1, 0.0)
    for node, name in enumerate(nodes):
        if name in leaves:
            axis.text(position[node][0] + 0.1, position[node][1], name, va="center")
    axis.set_ylim(len(leaves) - 0.5, -0.5)
    axis.set_xlim(-0.2, max(x for x, _ in position.values()) + 0.6)
    axis.axis("off")
    axis.set_title("the tasks", fontsize=10)
