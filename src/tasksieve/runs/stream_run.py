"""The run of a stream: its model, and what a report says of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import online
from ..fitted.restore import set_state
from ..report.content import FitQuality, ReportContent
from ..report.methods import model_words, objective_words, paper, software
from ..report.model_content import model_content
from ..report.words import are, count
from ..tables import Encoding
from .code import code_samples
from .folder import CONFIG, DATA, STREAM, RunError, RunFolder
from .methods import tasksieve_version
from .model_file import SavedModel
from .stream_history import history
from .trust_content import as_written

ESTIMATORS = {"regressor": "OnlineMultiTaskRegressor", "classifier": "OnlineMultiTaskClassifier"}
MEASURES = {
    "regressor": "R2 of rows before they were learned",
    "classifier": "accuracy of rows before they were learned",
}
LOSSES = {"squared": "half squared error", "logistic": "logistic loss", "hinge": "hinge loss"}
# Of the losses along the stream, so many are worth a line.
MOST_MARKS = 8


def load_online(folder: RunFolder) -> Any:
    """The online model of a run folder; a file that is not one is a `RunError`."""
    name = ESTIMATORS.get(str(folder.read_json(CONFIG).get("model")))
    if name is None:
        raise RunError(f"{folder / CONFIG} is not that of a stream")
    try:
        return getattr(online, name).load(folder / STREAM)
    except FileNotFoundError:
        raise RunError(f"there is no file {folder / STREAM}") from None
    except ValueError as error:
        raise RunError(str(error)) from None


def load_stream(folder: RunFolder) -> SavedModel:
    """The model of a stream, to predict with."""
    config, data = folder.read_json(CONFIG), folder.read_json(DATA)
    model = load_online(folder)
    names = data.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RunError(f"{folder / DATA} is not that of a stream")
    if len(names) != model.n_features_in_:
        raise RunError(f"{folder / DATA} names {len(names)} features, the model has {model.n_features_in_}")
    if not hasattr(model, "feature_names_in_"):
        set_state(model, feature_names=np.array(names, dtype=object), fitted_to_arrays=True)
    encoding = Encoding([], names) if data.get("libsvm") else Encoding([(name, None) for name in names])
    target = [str(config.get("target") or "label")]
    return SavedModel(model, "stream", encoding, None, target, config.get("task"))


def stream_content(folder: RunFolder) -> ReportContent:
    """Everything a report shows of a stream. There is no certificate: that takes the rows, and they are gone."""
    saved, config, data = load_stream(folder), folder.read_json(CONFIG), folder.read_json(DATA)
    model, target = saved.estimator, saved.targets[0]
    progress = model.progress()
    labels = [str(label) for label in model.tasks_.tolist()] if saved.task else [target]
    n_selected, d = int(np.count_nonzero(model.coef_.any(axis=0))), int(model.n_features_in_)
    rows = int(model.n_rows_seen_)
    tasks = f" in {len(labels):,} tasks (column “{saved.task}”)" if saved.task else ""
    foreseen = ""
    if np.isfinite(progress.loss):
        predicted = "Each row was predicted before it was learned: the mean loss of these predictions is"
        foreseen = f"{predicted} {progress.loss:.4g}. "
    paragraph, citations = _methods(model, tasksieve_version(folder))
    # a run of version 0.1 has kept no losses
    scored = [FitQuality(MEASURES[str(config["model"])], progress.score, progress.weight)]
    return model_content(
        model,
        labels,
        labels,
        saved.feature_names,
        scored if np.any(progress.weight > 0) else [],
        (),
        title=f"What predicts {target}?",
        asked=(
            f"Which of {d:,} features are needed to predict “{target}”{tasks}? {rows:,} rows of {data.get('name')} "
            f"were learned one at a time by {type(model).__name__}, in the order in which they came."
        ),
        answered=(
            f"{n_selected:,} of {d:,} features {are(n_selected)} used after the last row. {foreseen}"
            "The features are those of an iterate, not of a proved optimum: the method certify, in Python, proves what "
            "rows at hand decide."
        ),
        certificate={},
        facts=_facts(model, progress, config, data, n_selected),
        **as_written(folder),
        stream=history(folder, model, LOSSES.get(str(model.loss), "loss")),
        methods=paragraph,
        citations=citations,
        code=code_samples(folder, saved, config),
    )


def _methods(model: Any, version: str) -> tuple[str, list[str]]:
    """A paragraph for an article, and what to cite."""
    name, params = type(model).__name__, model.get_params(deep=False)
    gamma = f"gamma = {model.gamma_:.4g}" + (", set by the rows" if model.gamma == "auto" else "")
    said = (
        f"We used {model_words(name, params)}, as implemented in tasksieve {version}, on "
        f"{count(int(model.n_rows_seen_), 'row')} of {count(len(model.tasks_), 'task')} and "
        f"{count(int(model.n_features_in_), 'feature')}, learned once each, in the order in which they came. Each step "
        f"minimises {objective_words(name, params)} (alpha = {model.alpha:.4g}; {gamma})."
    )
    loss = float(model.progressive_loss_)
    if np.isfinite(loss):
        named = LOSSES.get(str(model.loss), "loss")
        said += f" The mean {named} of the rows, each predicted before it was learned, was {loss:.4g}."
    said += " The features are those of the last iterate; no optimality is claimed."
    return said, [software(version), paper(name)]


def _facts(
    model: Any, progress: Any, config: dict[str, Any], data: dict[str, Any], n_selected: int
) -> list[tuple[str, str]]:
    facts = [
        ("table", str(data.get("name"))),
        ("rows learned", f"{int(model.n_rows_seen_):,}"),
        ("tasks", f"{len(model.tasks_):,}"),
        ("features", f"{int(model.n_features_in_):,}"),
        ("features selected", f"{n_selected:,}"),
        ("model", f"{config['model']} ({type(model).__name__}), loss {model.loss}, penalty {model.penalty}"),
        ("alpha", f"{model.alpha:.6g}"),
        ("gamma", f"{model.gamma_:.6g}" + (" (auto)" if model.gamma == "auto" else "")),
    ]
    if np.isfinite(progress.loss):
        facts.append(("mean loss of rows before they were learned", f"{progress.loss:.6g}"))
    marks = list(zip(progress.rows.tolist(), progress.losses.tolist(), strict=True))[-MOST_MARKS:]
    facts += [(f"the same up to row {rows:,}", f"{loss:.6g}") for rows, loss in marks]
    return facts
