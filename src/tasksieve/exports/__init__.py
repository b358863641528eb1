"""Models as files that predict without this library: JSON, plain Python, SQL, ONNX, score files of genotypes.

`description` is what all of them say, made by `from_model` (with `columns`: where features come from); one file writes
each format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..messages import value_error

__all__ = ["export"]
__dir__ = __all__.copy  # TAB shows these alone


def export(
    model: Any,
    file: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    task: str | None = None,
    offset: str | None = None,
    table: str | None = None,
    variants: Any = None,
    genome_build: str | None = None,
) -> Path:
    r"""Write a model into a file that predicts without this library.

    .. math:: \hat y = g\Bigl(b_t + o + \sum_j w_{tj} x_j\Bigr)

    with g the link of the task: the score itself, an exponential, probabilities and the most probable class, a log
    hazard. Only features are written that some task uses.

    Parameters
    ----------
    model : fitted estimator
        Any with linear scores; or a `sklearn.pipeline.Pipeline` that ends with one, behind a `FillMissing`, a
        `sklearn.preprocessing.StandardScaler`, or both in that order.
    file : path
        Its ending says what is written: ``.json`` (the numbers, with a schema), ``.py`` (plain Python without imports:
        ``predict(row, task)``), ``.sql`` (a SELECT for SQLite, DuckDB and PostgreSQL),
        ``.onnx`` (float32; needs the package onnx). The file is replaced as a whole or not at all. Of a model of
        genotypes ``.score``, for ``plink2 --score``, with files of allele frequencies (``.afreq``), or ``.pgs.txt``,
        PGS Catalog's format, a file for each task: both with a JSON file of what they cannot hold (intercepts,
        covariates) beside them.
    feature_names : sequence of str, optional
        Names of the columns of X; by default those of the data frame that the model was fitted to, else x0, x1, ...
    task : str, optional
        The input that holds the task of a row. By default the model's own ``task``, where that is a name; else every
        task is predicted for every row, or the task is given apart.
    offset : str, optional
        The input that is added to scores. By default "offset" for models that were fitted with one, else none.
        (`MultinomialOWL`: one for each class, ``offset (class)``.)
    table : str, optional
        The table that the SELECT of a ``.sql`` file reads, by default "rows".
    variants : Genotypes or data frame of variants, optional
        Of score files: what the model was fitted to, or its table of variants.
    genome_build : str, optional
        Of PGS Catalog's format: GRCh37, GRCh38.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        For a model without linear scores of columns (strings, hashed features, patterns of present columns), named
        with the reason.

    Examples
    --------
    >>> import tasksieve as ts, tempfile, pathlib
    >>> X, y, task, _ = ts.datasets.make_small_tasks(effects=(2.0, 1.0))
    >>> model = ts.MultiTaskLasso(alpha=0.3).fit(X, y, task=task)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = ts.export(model, pathlib.Path(folder) / "model.py")
    ...     scorer = {}
    ...     exec(file.read_text(), scorer)
    >>> row = {f"x{j}": value for j, value in enumerate(X[0])}
    >>> abs(scorer["predict"](row, "a") - model.predict(X[:1], task=["a"])[0]) < 1e-12
    np.True_
    """
    from .from_model import describe
    from .score_files import SCORES, export_scores
    from .write import checked_format, write_description

    if checked_format(file, table) in SCORES:
        return export_scores(model, Path(file), variants, task=task, offset=offset, genome_build=genome_build)
    if variants is not None or genome_build is not None:
        raise value_error("{variants} and {genome_build} are for score files (.score, .pgs.txt).")
    return write_description(describe(model, feature_names=feature_names, task=task, offset=offset), file, table)
