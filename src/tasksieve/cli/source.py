"""Where the rows of a run come from: what the commands ask of every kind of input."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..linear.null_model import fit_null
from ..report.content import FitQuality
from ..report.from_model import task_quality
from ..runs import ModelKind
from ..runs.folder import file_digest
from .exit_codes import UsageError
from .feature_groups import GROUP_WORDS
from .files import tables_digest, title
from .graph_file import GRAPH_WORDS
from .options import OPTIONS, refuse


def named(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Those of some options that have a value."""
    return {key: config[key] for key in keys if key in config}


class Source:
    """One kind of input. A subclass recognises it, refuses options that do not go with it, and reads it.

    What a fit needs of it is said here for rows in memory; sources that keep something else say otherwise.

    - `config`, `kind`: What is asked.
    - `problem` (`TableProblem` or `ChunkedProblem`): After `read`.
    - `notes`: Notes for the user on how it is read.
    - `decided`: Options that were not given and that reading has decided.
    - `has_rows`: Whether rows are kept; else sums over them.
    - `no_proof`, `not_saved`, `advice`: Why there is no certificate file, and no file of the problem, if so; what helps
      where a fit does not converge.
    """

    problem: Any
    has_rows = True
    genotypes = False
    no_proof = not_saved = advice = ""

    def __init__(self, config: dict[str, Any], kind: ModelKind) -> None:
        self.config, self.kind = config, kind
        self.notes: list[str] = []
        self.decided: dict[str, Any] = {}

    # --- which input, and what is asked of it ------------------------------------------------------------------------

    @classmethod
    def recognises(cls, config: dict[str, Any]) -> bool:
        """Whether a configuration names such input."""
        raise NotImplementedError

    @classmethod
    def decide(cls, config: dict[str, Any]) -> None:
        """Refuse options that do not go together, and write down what is meant where nothing is said."""
        of_genotypes = (option.key for option in OPTIONS if option.panel == "Genotypes" and option.key in config)
        refuse(of_genotypes, "goes with --bfile, --pfile, --vcf-zarr or --bgen")

    @classmethod
    def open(cls, config: dict[str, Any], kind: ModelKind, whole: bool) -> Source:
        """The source to read; ``whole`` where all rows are needed, whatever they take."""
        return cls(config, kind)

    @classmethod
    @contextmanager
    def connected(cls, address: str | None) -> Iterator[None]:
        """With a client of the cluster at the address of ``--cluster``."""
        if address is not None:
            raise UsageError(
                "--cluster: is for Zarr stores (data.zarr); other tables are read into this machine's memory"
            )
        yield

    @property
    def title(self) -> str:
        """What the data are called."""
        return title(self.config["table"])

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self) -> Source:
        """Read it; itself, or the source that serves better, which is known only now."""
        raise NotImplementedError

    def files(self) -> list[Path]:
        """Files that the answer depends on, but for the table and those that options of the model name."""
        return []

    def digest(self) -> str:
        """One digest for the table and the files beside it."""
        config, digest = self.config, tables_digest(self.config["table"])
        words = {"graph": GRAPH_WORDS, "task_graph": GRAPH_WORDS, "feature_groups": GROUP_WORDS}
        named = [Path(config[key]) for key in words if config.get(key) is not None and config[key] not in words[key]]
        for path in [*named, *self.files()]:
            digest = hashlib.sha256((digest + file_digest(path)).encode()).hexdigest()
        return digest

    # --- what a fit needs --------------------------------------------------------------------------------------------

    @property
    def matrix(self) -> Any:
        """X in memory."""
        return self.problem.X

    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator that come from the data."""
        return {}

    def fit(self, model: Any) -> None:
        groups = hasattr(model, "cv")  # without folds they are for halves and errors alone
        model.fit(self.problem.X, self.problem.y, **self.problem.row_arguments(groups))

    def path(self, model: Any, grid: dict[str, Any]) -> Any:
        return model.path(self.problem.X, self.problem.y, **self.problem.row_arguments(), **grid)

    def null_model(self, model: Any) -> Any:
        """The null model of the rows."""
        return fit_null(model, self.problem.X, self.problem.y, **self.problem.row_arguments(groups=False))

    def quality(self, model: Any) -> FitQuality:
        """How well each task is fitted."""
        rows = self.problem.row_arguments(groups=False)
        return task_quality(model, self.problem.X, self.problem.y, **rows, where="the training rows")
