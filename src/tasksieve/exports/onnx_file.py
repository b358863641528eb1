"""An export as ONNX: matrices of inputs to scores, classes and probabilities, in float32.

Inputs are `numbers` (n, p), `words` (n, q), `task` (n,) and `offset` (n, 1), those that the model needs. Numbers and
words are either the columns that the model uses, which the metadata name, or all of those that it was fitted to, in
their order. NaN, and an empty word, are missing. A row that lacks what it needs has the score NaN.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..messages import value_error
from ..optional import require
from .description import PROBABLE, Description, Task, number_columns, word_columns

Array = np.ndarray[Any, Any]

OPSET, LABEL_OPSET, IR = 17, 3, 8  # what runtimes since 2022 read
MISSING, UNKNOWN = -1, -2  # codes of words
NO_COLUMN = 2**31 - 1  # of a matrix with neither all columns nor those used: runtimes refuse it


def onnx_bytes(found: Description) -> bytes:
    onnx = require("onnx", "ONNX files need", "'tasksieve[export]'")
    graph = _Graph(onnx.helper, onnx.TensorProto, onnx.numpy_helper)
    facts = _build(graph, found)
    helper = onnx.helper
    model = helper.make_model(
        helper.make_graph(graph.nodes, "tasksieve", graph.inputs, graph.outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", LABEL_OPSET)],
        ir_version=IR,
        producer_name="tasksieve",
        producer_version=found.version,
    )
    helper.set_model_props(model, {"tasksieve": json.dumps(facts)})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


class _Graph:
    """Nodes in the making: each operation returns the name of its result."""

    def __init__(self, helper: Any, types: Any, arrays: Any) -> None:
        self.helper, self.types, self.arrays = helper, types, arrays
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: str, domain: str = "", called: str | None = None, **attributes: Any) -> str:
        result = f"_{len(self.nodes)}" if called is None else called
        self.nodes.append(self.helper.make_node(kind, list(inputs), [result], domain=domain, **attributes))
        return result

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        title = f"_c{len(self.constants)}"
        array = np.asarray(values, dtype=dtype)
        if array.dtype == object:  # words
            words = [str(word).encode() for word in array.ravel().tolist()]
            tensor = self.helper.make_tensor(title, self.types.STRING, array.shape, words)
        else:
            tensor = self.arrays.from_array(np.ascontiguousarray(array), title)
        self.constants.append(tensor)
        return title

    def input(self, title: str, kind: int, *shape: int | str) -> str:
        self.inputs.append(self.helper.make_tensor_value_info(title, kind, ["n", *shape]))
        return title

    def columns(self, title: str, kind: int, used: Sequence[str], every: Sequence[str]) -> str:
        """The columns that a model uses, of an input with these alone or with all."""
        if len(used) == len(every) or len(set(every)) < len(every):
            return self.input(title, kind, len(used))
        given = self.input(title, kind, f"columns_of_{title}")
        count = self.add("Shape", given, start=1, end=2)
        place = {column: k for k, column in enumerate(every)}
        chosen = self.constant([NO_COLUMN] * len(used), np.int64)
        for size, columns in ((len(used), range(len(used))), (len(every), [place[name] for name in used])):
            here = self.add("Equal", count, self.constant([size], np.int64))
            chosen = self.add("Where", here, self.constant(list(columns), np.int64), chosen)
        return self.add("Gather", given, chosen, axis=1)

    def output(self, title: str, of: str, kind: int, shape: Sequence[int]) -> None:
        self.add("Identity", of, called=title)
        self.outputs.append(self.helper.make_tensor_value_info(title, kind, ["n", *shape]))

    def cast(self, of: str, kind: int) -> str:
        return self.add("Cast", of, to=kind)

    def nan_where(self, test: str, values: str) -> str:
        return self.add("Where", test, self.constant(np.nan), values)


def _build(graph: _Graph, found: Description) -> dict[str, Any]:
    """The whole graph; what its metadata say."""
    numbers, words = _columns(found)
    features, order, unknown = _features(graph, found, numbers, words)
    scores = _scores(graph, found, features, order)
    if unknown is not None:
        scores = graph.nan_where(unknown, scores)
    if found.offsets:
        given = graph.input("offset", graph.types.FLOAT, len(found.offsets))
        scores = graph.add("Add", scores, given)
    facts: dict[str, Any] = {"model": found.model, "version": found.version, "numbers": numbers, "words": words}
    facts |= {"all_columns": {"numbers": len(found.every_number), "words": len(found.every_word)}}
    facts |= {"offset": found.offsets, "task_column": found.task_column if found.alike else None}
    facts["tasks"] = [{"name": own.name, "link": own.link, "classes": own.classes} for own in found.tasks]
    own, count = found.tasks[0], len(found.tasks)
    if not found.alike:
        cuts = np.cumsum([0, *(len(task.scores) for task in found.tasks)]).tolist()
        for t, task in enumerate(found.tasks):
            columns = graph.constant(np.arange(cuts[t], cuts[t + 1]), np.int64)
            _answer(graph, task, graph.add("Gather", scores, columns, axis=1), (), [task], f"_{t}")
        return facts
    width = len(own.scores)
    if found.task_column is not None:
        scores, code = _of_row(graph, found, scores, width)
        _answer(graph, own, scores, (), found.tasks, "", code)
    elif count > 1:
        scores = graph.add("Reshape", scores, graph.constant([-1, count, width], np.int64))
        _answer(graph, own, scores, (count,), found.tasks, "")
    else:
        _answer(graph, own, scores, (), found.tasks, "")
    return facts


# --- features ---------------------------------------------------------------------------------------------------


def _columns(found: Description) -> tuple[list[str], list[str]]:
    """Columns of numbers, and of words."""
    for feature in found.features:
        own = found.inputs[feature.input]
        if own.kind == "date" and feature.coding == "missing":
            parts = [of.name for of in found.features if of.input == feature.input and of.coding == "part"]
            if not parts:
                raise value_error(
                    "{name!r}: ONNX gets dates by their parts, and the model uses none, only whether it is missing.",
                    name=own.name,
                )
    return list(number_columns(found.inputs, found.features)), list(word_columns(found.inputs))


def _features(
    graph: _Graph, found: Description, numbers: list[str], words: list[str]
) -> tuple[str | None, list[int], str | None]:
    """The matrix of features (None: there are none), which column is which feature, and whether rows hold words that
    are not known, (n, 1)."""
    place = {column: k for k, column in enumerate(numbers)}
    blocks: list[str] = []
    order: list[int] = []
    unknown: list[str] = []
    given = graph.columns("numbers", graph.types.FLOAT, numbers, found.every_number) if numbers else ""
    holes = graph.add("IsNaN", given) if numbers else ""

    def taken(source: str, chosen: list[tuple[int, str]]) -> str:
        order.extend(j for j, _ in chosen)
        return graph.add("Gather", source, graph.constant([place[c] for _, c in chosen], np.int64), axis=1)

    every = list(enumerate(found.features))
    values = [(j, of.name if of.coding == "part" else found.inputs[of.input].name) for j, of in every
              if of.coding in ("value", "part")]  # fmt: skip
    if values:
        blocks.append(taken(given, values))
    absent = []
    for j, of in every:
        own = found.inputs[of.input]
        if of.coding == "missing" and own.kind != "category":
            part = next((o.name for o in found.features if o.input == of.input and o.coding == "part"), own.name)
            absent.append((j, part))
    if absent:
        blocks.append(graph.cast(taken(holes, absent), graph.types.FLOAT))
    given_words = graph.columns("words", graph.types.STRING, words, found.every_word) if words else ""
    for q, column in enumerate(words):
        own = next(of for of in found.inputs if of.name == column)
        cell = graph.add("Gather", given_words, graph.constant([q], np.int64), axis=1)
        keys = ["", *own.categories]
        codes = [MISSING, *range(len(own.categories))]
        coded = graph.add("LabelEncoder", cell, domain="ai.onnx.ml", keys_strings=keys, values_int64s=codes,
                          default_int64=UNKNOWN)  # fmt: skip
        lacking = graph.add("Equal", coded, graph.constant([MISSING], np.int64))
        unknown.append(graph.add("Equal", coded, graph.constant([UNKNOWN], np.int64)))
        equal = [(j, of) for j, of in every if found.inputs[of.input] is own and of.coding == "equals"]
        if equal:
            wanted = [own.categories.index(str(of.of)) for _, of in equal]
            same = graph.add("Equal", coded, graph.constant([wanted], np.int64))
            same = graph.cast(same, graph.types.FLOAT)
            blocks.append(graph.nan_where(lacking, same))
            order += [j for j, _ in equal]
        for j, of in every:
            if found.inputs[of.input] is own and of.coding == "missing":
                blocks.append(graph.cast(lacking, graph.types.FLOAT))
                order.append(j)
    strange = None
    for test in unknown:
        strange = test if strange is None else graph.add("Or", strange, test)
    if not blocks:
        return None, [], strange
    matrix = graph.add("Concat", *blocks, axis=1) if len(blocks) > 1 else blocks[0]
    centre = _centre(found)[order]
    scale = np.array([found.features[j].scale for j in order])
    if np.any(centre != 0.0):
        matrix = graph.add("Sub", matrix, graph.constant(centre))
    if np.any(scale != 1.0):
        matrix = graph.add("Div", matrix, graph.constant(scale))
    return matrix, order, strange


def _centre(found: Description) -> Array:
    """Of all features, in single precision: what that leaves of the centres goes into the constants of the scores."""
    return np.array([of.centre for of in found.features], dtype=np.float32).astype(np.float64)


def _scores(graph: _Graph, found: Description, features: str | None, order: list[int]) -> str:
    """All scores of all tasks, (n, number of them): fills of missing values differ from task to task, so they are
    products of where values are missing with coefficients times fills."""
    rows = [(t, score) for t, task in enumerate(found.tasks) for score in task.scores]
    constants = np.array([score.intercept for _, score in rows])
    if features is None:
        raise value_error("no task uses any feature: there is nothing that ONNX could read.")
    place, centre = {j: k for k, j in enumerate(order)}, _centre(found).tolist()
    weights, filled, needed = (np.zeros((len(order), len(rows))) for _ in range(3))
    for r, (t, score) in enumerate(rows):
        for j, weight in score.coefficients:
            of = found.features[j]
            weights[place[j], r] = weight
            constants[r] += weight * ((centre[j] - of.centre) / of.scale)
            fill = of.fill_of(t)
            if fill is not None:
                filled[place[j], r] = weight * ((fill - centre[j]) / of.scale)
            elif of.coding != "missing":
                needed[place[j], r] = 1.0
    holes = graph.add("IsNaN", features)
    absent = graph.cast(holes, graph.types.FLOAT)
    whole = graph.add("Where", holes, graph.constant(0.0), features)
    scores = graph.add("Add", graph.add("MatMul", whole, graph.constant(weights)), graph.constant(constants))
    if filled.any():
        scores = graph.add("Add", scores, graph.add("MatMul", absent, graph.constant(filled)))
    lacking = graph.add("MatMul", absent, graph.constant(needed))
    return graph.nan_where(graph.add("Greater", lacking, graph.constant(0.5)), scores)


# --- answers ----------------------------------------------------------------------------------------------------


def _of_row(graph: _Graph, found: Description, scores: str, width: int) -> tuple[str, str]:
    """The scores of each row's own task, (n, K), NaN of one that is not known; and its code."""
    names = [own.name for own in found.tasks]
    kind = graph.types.STRING
    encoder: dict[str, Any] = {"keys_strings": [str(name) for name in names]}
    if all(isinstance(name, int) for name in names):
        kind, encoder = graph.types.INT64, {"keys_int64s": [int(name or 0) for name in names]}
    elif not all(isinstance(name, str) for name in names):
        raise value_error("tasks of ONNX are words or whole numbers; got {name!r}.", name=names[0])
    given = graph.input("task", kind)
    code = graph.add("LabelEncoder", given, domain="ai.onnx.ml", values_int64s=list(range(len(names))),
                     default_int64=UNKNOWN, **encoder)  # fmt: skip
    strange = graph.add("Less", code, graph.constant(0, np.int64))
    known = graph.add("Where", strange, graph.constant(0, np.int64), code)
    each = graph.add("Reshape", scores, graph.constant([-1, len(names), width], np.int64))
    column = graph.add("Unsqueeze", known, graph.constant([1], np.int64))
    own = graph.add("GatherND", each, column, batch_dims=1)
    return graph.nan_where(graph.add("Unsqueeze", strange, graph.constant([1], np.int64)), own), known


def _answer(
    graph: _Graph, task: Task, scores: str, shape: tuple[int, ...], tasks: Sequence[Task], suffix: str,
    code: str | None = None,
) -> None:  # fmt: skip
    """Outputs of scores whose last axis is that of the classes, of the shape (n, *shape, K)."""
    real, width = graph.types.FLOAT, len(task.scores)
    single = graph.add("Squeeze", scores, graph.constant([-1], np.int64)) if width == 1 else scores
    graph.output(f"score{suffix}", single, real, shape if width == 1 else (*shape, width))
    if task.classes is None:
        answer = graph.add("Exp", single) if task.link == "exp" else single
        graph.output(f"prediction{suffix}", answer, real, shape)
        if task.link == "log-hazard":
            graph.output(f"hazard_ratio{suffix}", graph.add("Exp", single), real, shape)
        return
    ranked = scores
    if task.link in PROBABLE:
        chances = _chances(graph, task, scores, tasks, code)
        graph.output(f"probabilities{suffix}", chances, real, (*shape, len(task.classes)))
        ranked = chances if task.link == "ordinal" else scores
    if task.link in ("logistic", "sign"):
        chosen = graph.cast(graph.add("Greater", single, graph.constant(0.0)), graph.types.INT64)
    else:
        chosen = graph.add("ArgMax", ranked, axis=-1, keepdims=0)
    labels, kind = _labels(graph, task)
    graph.output(f"prediction{suffix}", graph.add("Gather", labels, chosen, axis=0), kind, shape)


def _chances(graph: _Graph, task: Task, scores: str, tasks: Sequence[Task], code: str | None) -> str:
    if task.link == "logistic":
        both = graph.add("Neg", scores), scores
        return graph.add("Concat", *(graph.add("Sigmoid", of) for of in both), axis=-1)
    if task.link == "softmax":
        return graph.add("Softmax", scores, axis=-1)
    if task.link == "one-vs-rest":
        each = graph.add("Sigmoid", scores)
        total = graph.add("ReduceSum", each, graph.constant([-1], np.int64), keepdims=1)
        return graph.add("Div", each, total)
    thresholds = graph.constant([own.thresholds for own in tasks])  # (T, K - 1)
    if code is not None:
        thresholds = graph.add("Gather", thresholds, code, axis=0)
    below = graph.add("Sigmoid", graph.add("Sub", thresholds, scores))
    one = graph.add("Add", graph.add("Mul", scores, graph.constant(0.0)), graph.constant(1.0))
    ends = graph.add("Concat", below, one, axis=-1), graph.add("Concat", graph.add("Sub", one, one), below, axis=-1)
    return graph.add("Sub", *ends)


def _labels(graph: _Graph, task: Task) -> tuple[str, int]:
    """The classes, and their type: whole numbers, numbers, or words."""
    classes = list(task.classes or ())
    if all(isinstance(label, bool) for label in classes):
        return graph.constant(classes, np.bool_), graph.types.BOOL
    if all(isinstance(label, int) for label in classes):
        return graph.constant(classes, np.int64), graph.types.INT64
    if all(isinstance(label, int | float) for label in classes):
        return graph.constant(classes), graph.types.FLOAT
    return graph.constant([str(label) for label in classes], object), graph.types.STRING
