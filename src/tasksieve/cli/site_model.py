"""``tasksieve site model``: the model of a site's tasks from the coordinator's result, as a run folder."""

from __future__ import annotations

import os
import shlex
import time

import numpy as np

from ..federated.fitted import FederatedFit
from ..federated.site import Site
from ..fitted.arguments import kernel_threads
from ..report.from_model import task_quality
from ..report.page import need_jinja
from ..report.rows import coefficient_rows, row_labels, task_names
from ..report.words import count
from ..runs import RunError, RunFolder, SavedModel, save_model
from ..runs.folder import CERTIFICATE, CONFIG, DATA, VERSIONS, file_digest
from ..runs.results import write_coefficients, write_quality
from ..tables import Encoding
from ..versions import versions
from .exit_codes import OK, UsageError
from .options import Asked
from .progress import Display
from .report import write_run_report

#: loss of a plan -> its model on the command line; of all others "any"
_KINDS = {"cox": "cox", "ordinal": "ordinal"}


def run_model(asked: Asked) -> int:
    site, fit = Site(asked.site), FederatedFit.load(asked.result)
    if asked.value is not None and not -len(fit) <= asked.value < len(fit):
        raise UsageError(f"--value: the path has values 0 to {len(fit) - 1}; got {asked.value}")
    if asked.report:
        need_jinja()
    began = time.perf_counter()
    plan, model = site.agreed(), site.model(fit, asked.value)
    seconds = time.perf_counter() - began
    folder = RunFolder(asked.out)
    folder.refuse_other_files()
    if folder.path.exists() and any(folder.path.iterdir()) and not asked.overwrite:
        raise RunError(f"{folder.path} exists: --overwrite starts anew")
    target = site.settings.get("target", "outcome")
    with folder:
        folder.clear()
        names = plan.columns
        folder.write_json(CONFIG, {"command": "site model", "plan": plan.digest.hex(), "site": site.name})
        folder.write_json(VERSIONS, versions())
        table, n_rows = site.folder / site.settings["table"], int(site.rows.X.shape[0])
        counted = {"table_rows": n_rows, "rows": n_rows, "features": len(names), "tasks": len(model.tasks_)}
        known = {"name": table.name, "sha256": file_digest(table), "notes": list(site.rows.notes)}
        words = ["tasksieve", "site", "model", asked.site, asked.result, "--out", asked.out]
        folder.write_json(DATA, {**known, **counted, "reproduce": shlex.join(words)})
        empty = model.null_objective_
        folder.write_json(
            CERTIFICATE,
            {
                "objective": float(model.objective_), "dual_gap": float(model.dual_gap_),
                "relative_gap": float(model.dual_gap_ / empty) if empty > 0 else 0.0, "tol": plan.tol,
                "null_objective": float(empty), "converged": bool(model.status_ == "converged"),
            },
        )  # fmt: skip
        covariates = np.flatnonzero(plan.weights == 0.0)
        write_coefficients(folder, *coefficient_rows(model), row_labels(model, [target]), names, covariates)
        kind, facts = _KINDS.get(plan.at(site.name).loss, "any"), {"offset": site.settings.get("offset"), "chosen": -1}
        encoding = Encoding([(name, None) for name in names])
        save_model(folder, SavedModel(model, kind, encoding, None, [target], site.settings.get("task"), facts))
        given = {"task": site.rows.task, "sample_weight": site.rows.sample_weight, "offset": site.rows.offset}
        given = {key: value for key, value in given.items() if value is not None}
        quality = task_quality(model, site.rows.X, site.rows.y, **given, where="the training rows")
        write_quality(folder, quality, task_names(model, ()))
        folder.write_json("timing.json", {"fit": seconds, "threads": kernel_threads()})
        folder.finish()
        if asked.report:
            write_run_report(folder, Display(asked.quiet, folder))
    if not asked.quiet:
        used = int(np.count_nonzero(np.delete(coefficient_rows(model)[0], covariates, axis=1).any(axis=0)))
        print(f"{type(model).__name__} of {count(len(model.tasks_), 'task')}: alpha = {model.alpha:.6g}, "
              f"{count(used, 'feature')} in use")  # fmt: skip
        print(f"everything is in {folder.path}{os.sep}")
    return OK
