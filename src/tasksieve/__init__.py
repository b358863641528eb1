"""tasksieve: sparse multi-task learning whose every answer carries a proof.

    >>> import tasksieve as ts
    >>> ts.MultiTaskLasso(alpha=0.1)
    MultiTaskLasso(alpha=0.1)

Names are loaded when they are first used, so that the import itself costs nothing.
"""

from __future__ import annotations

import warnings
from importlib import import_module

from . import renamed

TYPE_CHECKING = False  # as typing has it, whose import takes as long as all of this

__version__: str  # looked up when somebody asks

renamed.install()

# Public names, and the module of each.
_NAMES = {
    "design": ("Storage",),
    "exports": ("export",),
    "findings.bounds": ("pfer_bound",),
    "findings.compare": ("compare",),
    "findings.debiased": ("debiased_inference",),
    "findings.imputation": ("MultipleImputation",),
    "findings.knockoffs": ("KnockoffSelection",),
    "findings.permutation": ("permutation_test",),
    "findings.proportional_hazards": ("proportional_hazards_test",),
    "findings.refit": ("refit",),
    "findings.split": ("split_inference",),
    "findings.stability": ("StabilitySelection",),
    "fitted.checkpoint": ("FoldStore", "checkpoint"),
    "fitted.fill_missing": ("FillMissing",),
    "fitted.model_selection": ("TaskKFold", "task_scorer"),
    "fitted.order": ("OrderWarning",),
    "fitted.path": ("RegularizationPath",),
    "fitted.probability_calibration": ("probability_calibration",),
    "fitted.progress": ("Progress", "watch"),
    "fitted.quality": ("HeldOutQuality",),
    "fitted.scales": ("ScaleWarning",),
    "genotypes": ("Genotypes", "read_bgen", "read_pgen", "read_plink", "read_vcf_zarr"),
    "linear": (
        "CalibratedMultiTaskLasso", "CalibratedMultiTaskLassoCV", "MultiTaskClassifier",
        "MultiTaskClassifierCV", "MultiTaskCox", "MultiTaskCoxCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV",
        "MultiTaskGroupLasso", "MultiTaskGroupLassoCV", "MultiTaskHuber", "MultiTaskHuberCV", "MultiTaskLasso",
        "MultiTaskLassoCV", "MultiTaskLogisticRegression", "MultiTaskLogisticRegressionCV", "MultiTaskMixed",
        "MultiTaskMixedCV", "MultiTaskOWL", "MultiTaskOWLCV", "MultiTaskOrdinal", "MultiTaskOrdinalCV",
        "MultiTaskPoisson", "MultiTaskPoissonCV", "MultiTaskQuantile", "MultiTaskQuantileCV",
        "MultiTaskRegressor", "MultiTaskRegressorCV", "MultiTaskSparseGroupLasso",
        "MultiTaskSparseGroupLassoCV", "MultinomialOWL", "MultinomialOWLCV",
    ),
    "linear.grading": ("grade",),
    "linear.pretraining": ("Pretraining",),
    "messages": ("ParameterError",),
    "online": ("OnlineMultiTaskClassifier", "OnlineMultiTaskRegressor"),
    "outcomes": ("survival",),
    "path.status": ("Status",),
    "problem_file": ("load_problem", "save_problem"),
    "report": ("write_report",),
    "svm": ("GraphPath", "GraphSVC", "GraphSVCCV", "GraphSVR", "GraphSVRCV", "WeightedDegreeHasher"),
    "tasks": ("TaskMoments", "by_pattern", "on_device"),
    "tasks.cluster": ("open_zarr",),
    "tasks.many_tasks": ("ManyTasksWarning",),
}  # fmt: skip
_HOME = {name: home for home, names in _NAMES.items() for name in names}

# Parts of the package that are useful on their own: ts.screening, ts.datasets, ...
_PARTS = (
    "checks", "datasets", "design", "federated", "findings", "genotypes", "graph", "linear", "losses", "online",
    "path", "penalties", "proof", "report", "screening", "solvers", "storages", "svm", "tasks",
    "verify",
)  # fmt: skip

if TYPE_CHECKING:
    from typing import Any

    from . import datasets as datasets
    from . import design as design
    from . import federated as federated
    from . import findings as findings
    from . import genotypes as genotypes
    from . import graph as graph
    from . import linear as linear
    from . import losses as losses
    from . import online as online
    from . import path as path
    from . import penalties as penalties
    from . import proof as proof
    from . import report as report
    from . import screening as screening
    from . import solvers as solvers
    from . import storages as storages
    from . import svm as svm
    from . import tasks as tasks
    from . import verify as verify
    from .design import Storage as Storage
    from .exports import export as export
    from .findings.bounds import pfer_bound as pfer_bound
    from .findings.compare import compare as compare
    from .findings.debiased import debiased_inference as debiased_inference
    from .findings.imputation import MultipleImputation as MultipleImputation
    from .findings.knockoffs import KnockoffSelection as KnockoffSelection
    from .findings.permutation import permutation_test as permutation_test
    from .findings.proportional_hazards import proportional_hazards_test as proportional_hazards_test
    from .findings.refit import refit as refit
    from .findings.split import split_inference as split_inference
    from .findings.stability import StabilitySelection as StabilitySelection
    from .fitted.checkpoint import FoldStore as FoldStore
    from .fitted.checkpoint import checkpoint as checkpoint
    from .fitted.fill_missing import FillMissing as FillMissing
    from .fitted.model_selection import TaskKFold as TaskKFold
    from .fitted.model_selection import task_scorer as task_scorer
    from .fitted.order import OrderWarning as OrderWarning
    from .fitted.path import RegularizationPath as RegularizationPath
    from .fitted.probability_calibration import probability_calibration as probability_calibration
    from .fitted.progress import Progress as Progress
    from .fitted.progress import watch as watch
    from .fitted.quality import HeldOutQuality as HeldOutQuality
    from .fitted.scales import ScaleWarning as ScaleWarning
    from .genotypes import Genotypes as Genotypes
    from .genotypes import read_bgen as read_bgen
    from .genotypes import read_pgen as read_pgen
    from .genotypes import read_plink as read_plink
    from .genotypes import read_vcf_zarr as read_vcf_zarr
    from .linear import *  # noqa: F403
    from .linear.grading import grade as grade
    from .linear.pretraining import Pretraining as Pretraining
    from .messages import ParameterError as ParameterError
    from .online import OnlineMultiTaskClassifier as OnlineMultiTaskClassifier
    from .online import OnlineMultiTaskRegressor as OnlineMultiTaskRegressor
    from .outcomes import survival as survival
    from .path.status import Status as Status
    from .problem_file import load_problem as load_problem
    from .problem_file import save_problem as save_problem
    from .report import write_report as write_report
    from .svm import GraphPath as GraphPath
    from .svm import GraphSVC as GraphSVC
    from .svm import GraphSVCCV as GraphSVCCV
    from .svm import GraphSVR as GraphSVR
    from .svm import GraphSVRCV as GraphSVRCV
    from .svm import WeightedDegreeHasher as WeightedDegreeHasher
    from .tasks import TaskMoments as TaskMoments
    from .tasks import by_pattern as by_pattern
    from .tasks import on_device as on_device
    from .tasks.cluster import open_zarr as open_zarr
    from .tasks.many_tasks import ManyTasksWarning as ManyTasksWarning

    checks: Any  # above all estimators: nothing of the package may depend on it

__all__ = ["__version__", *_HOME]


if not TYPE_CHECKING:  # who checks types knows the names from above, and a name that is none by its absence

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        elif name == "__version__":
            value = _version()
        elif name == "model_selection":  # where 0.1 had them
            warnings.warn("tasksieve.model_selection: use ts.TaskKFold and ts.task_scorer", FutureWarning, stacklevel=2)
            return import_module(f"{__name__}.fitted.model_selection")
        elif name in _PARTS:
            value = import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def _version() -> str:
    """Return the version that pyproject.toml states: the one beside the sources that run, else the installed one.

    Metadata of an editable installation stay as they were at the installation; the sources go on.
    """
    from pathlib import Path

    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if project.is_file():
        import tomllib

        stated = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        if stated.get("name") == __name__:
            return str(stated["version"])
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    try:
        return version(__name__)
    except PackageNotFoundError:  # sources alone, without what says their version
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])  # what is for people: TAB shows nothing else
