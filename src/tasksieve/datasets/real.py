"""Real data: digits that come with scikit-learn, and public sets read from a folder or downloaded once.

A ``fetch_...`` function looks for its file in the folder given, in the folder named by the environment variable
TASKSIEVE_DATA, and among its earlier downloads; else it downloads the file from its public source with pooch
(``pip install 'tasksieve[data]'``). Either way the *numbers* are checked against a SHA-256 sum, so what is returned is
what the documentation and the tests use, in any container.

No data set is part of this library. Cite the papers named in the docstrings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..docstrings import described_by
from .container import TaskDataset

FILES = """
folder : path, optional
    Folder that holds {}; by default TASKSIEVE_DATA and earlier downloads.
download : bool, default=True
    Whether to download it where it is not found.
"""

Arrays = dict[str, np.ndarray]
HERE = Path(__file__).resolve().parent


class RealTasks(TaskDataset):
    """A `TaskDataset` of real data: it unpacks alike, and knows names.

    Attributes
    ----------
    feature_names : list of str
    task_names : list of str
        In the order of the task numbers.
    """

    feature_names: list[str]
    task_names: list[str]


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    - `name`: A prepared archive is called ``name.npz``.
    - `file`: The file as its source names it.
    - `checksum`: SHA-256 of the numbers, see `checksum`.
    - `by_hand`: What to do where the download fails.
    - `url`: Its address; None where it can only be had by hand, as a prepared archive.
    - `read`: Path of that file -> arrays X, y or Y, task.
    """

    name: str
    file: str
    checksum: str
    by_hand: str
    url: str | None = None
    read: Callable[[Path], Arrays] | None = None


# --- reading what the sources offer -----------------------------------------------------------------------------------


def _matlab(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        return loadmat(path)
    except Exception as error:  # a broken file may make the reader raise anything
        raise ValueError(f"{path} is not a MATLAB file that can be read: {error}") from error


def _read_cells(features: str, targets: str, path: Path, n_features: int | None = None) -> Arrays:
    """Two cell arrays, one cell per task, as stacked rows."""
    content = _matlab(path)
    parts = [np.asarray(part) for part in content[features].ravel()]
    labels = [np.asarray(part).ravel() for part in content[targets].ravel()]
    task = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return {"X": np.vstack(parts)[:, :n_features], "y": np.concatenate(labels), "task": task}


def _read_parkinsons(path: Path) -> Arrays:
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    if table.ndim != 2 or table.shape[1] != 22:
        raise ValueError(f"{path} does not have the 22 columns of parkinsons_updrs.data.")
    _, task = np.unique(table[:, 0], return_inverse=True)
    return {"X": table[:, [1, 2, 3, *range(6, 22)]], "Y": table[:, 4:6], "task": task}


def _read_sarcos(path: Path) -> Arrays:
    table = np.asarray(_matlab(path)["sarcos_inv_test"])
    return {"X": table[:, :21], "Y": table[:, 21:]}


MALSAR = "https://raw.githubusercontent.com/jiayuzhou/MALSAR/ca3d55b878cc4113f0d9603e8ac46538aeb1ecd9"
LANDMINE = (
    "https://raw.githubusercontent.com/daizhongxiang/Federated_Bayesian_Optimization/"
    "9f46a1dfbbcfd5823e026ad9418a4cb881676ae9"
)
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

SOURCES = {
    source.name: source
    for source in (
        Source(
            "school",
            "school.mat",
            "a256271f249d9d98f6505ee126d0b97a964dac3e49285db3a4e33ed90f5661b8",
            "take data/school.mat from the MALSAR package (github.com/jiayuzhou/MALSAR)",
            f"{MALSAR}/data/school.mat",
            partial(_read_cells, "X", "Y", n_features=27),  # MALSAR's copy ends with a column of ones
        ),
        Source(
            "landmine",
            "LandmineData.mat",
            "d062d14c1fb48da4b3a6b9cc7a77127de99ae9424d8e9e005d2acf50dc78026c",
            "look for LandmineData.mat (Xue et al., 2007), which several repositories hold",
            f"{LANDMINE}/LandmineData.mat",
            partial(_read_cells, "feature", "label"),
        ),
        Source(
            "parkinsons",
            "parkinsons_updrs.data",
            "6a62bc932992fd37256e64ed2893f9723f7ef781ae20dc479ee2cf34d8aa0c6d",
            "take telemonitoring/parkinsons_updrs.data from archive.ics.uci.edu, data set 189",
            f"{UCI}/parkinsons/telemonitoring/parkinsons_updrs.data",
            _read_parkinsons,
        ),
        Source(
            "sarcos",
            "sarcos_inv_test.mat",
            "c8dc6109b1b9057d921af8cf7c3c08729adefef519daecaf6281bbf127d6fd88",
            "take sarcos_inv_test.mat from gaussianprocess.org/gpml/data",
            "http://www.gaussianprocess.org/gpml/data/sarcos_inv_test.mat",
            _read_sarcos,
        ),
        Source(
            "mnist",
            "mnist.npz",
            "ac6786220acceb569ad1726ec7b56304419ef1409e8b59072056b4cd0e7f3068",
            "make mnist.npz with numpy.savez: X (30000 x 784, uint8: the first 20,000 training images, then the 10,000 "
            "test images), y (digits), split (0 train, 1 test), from sklearn.datasets.fetch_openml('mnist_784')",
        ),
        Source(
            "tdt2",
            "tdt2.npz",
            "c805dc9158ed1744995a8645437358b2775574d3a91d5b89a60e3e72c47cbb14",
            "make tdt2.npz with numpy.savez from Deng Cai's TDT2.mat, 30 categories: data, indices, indptr, shape "
            "(CSR, 9394 x 36771, counts) and y (0 to 29, largest category first)",
        ),
    )
}


def checksum(arrays: Arrays) -> str:
    """SHA-256 of a data set's numbers: X, y and task one after the other, rounded to single precision.

    A sparse X counts as its ``data``, ``indices`` and ``indptr``.
    """
    found = hashlib.sha256()
    for name in ("X", "data", "indices", "indptr", "y", "Y", "task"):
        if name in arrays:
            kind = "<i8" if name in ("task", "indices", "indptr") else "<f4"
            found.update(np.ascontiguousarray(arrays[name], dtype=kind).tobytes())
    return found.hexdigest()


def _fetch(name: str, folder: Any, download: bool) -> Arrays:
    """The arrays of a data set from the first place that has it."""
    source = SOURCES[name]
    for folder_ in _folders(folder):
        for file in (folder_ / f"{name}.npz", folder_ / source.file):
            if file.is_file():
                return _checked(source, file)
    searched = ", ".join(str(folder_) for folder_ in _folders(folder)) or "no folder"
    missing = f"{source.name}: neither {name}.npz nor {source.file} is in {searched}"
    remedy = f"{source.by_hand}, put it into a folder, and give that folder as folder= or in TASKSIEVE_DATA"
    if source.url is None or not download:
        raise FileNotFoundError(f"{missing}; {remedy}.")
    try:
        import pooch
    except ImportError as error:
        raise ImportError(f"{missing}; to download it: pip install 'tasksieve[data]'. Or {remedy}.") from error
    try:
        # the file has no checksum of its own; its numbers have, and they are checked below
        place = {"fname": source.file, "path": download_folder()}
        found = pooch.retrieve(source.url, known_hash=None, progressbar=False, **place)
    except Exception as error:  # no network, a moved file, a proxy: all the same to the user
        raise OSError(f"{source.name} could not be downloaded from {source.url} ({error}); {remedy}.") from error
    file = Path(found)
    try:
        return _checked(source, file)
    except ValueError:
        file.unlink(missing_ok=True)  # the next try must not find it
        raise


def _folders(folder: Any) -> list[Path]:
    """Folders to search, in order; a folder that was named must exist."""
    if folder is not None:
        given = Path(folder).expanduser()
        if not given.is_dir():
            raise FileNotFoundError(f"folder={str(folder)!r} is not a folder.")
        return [given]
    folders = []
    try:
        folders.append(data_folder())
    except FileNotFoundError:
        if os.environ.get("TASKSIEVE_DATA") is not None:
            raise
    return [*folders, download_folder()]


def download_folder() -> Path:
    """Where downloads are kept: ``tasksieve`` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache)."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "tasksieve"


def _checked(source: Source, file: Path) -> Arrays:
    if source.read is None or file.suffix == ".npz":
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except Exception as error:  # a broken archive may make the reader raise anything
            raise ValueError(f"{file} is not a NumPy archive that can be read: {error}") from error
    else:
        arrays = source.read(file)
    found = checksum(arrays)
    if found != source.checksum:
        raise ValueError(
            f"{file} does not hold the {source.name} data: the checksum of its numbers is {found[:16]}…, "
            f"expected {source.checksum[:16]}…. Get it anew: {source.by_hand}."
        )
    return arrays


def _real(X: Any, y: np.ndarray, task: np.ndarray | None, features: list[str], tasks: list[str]) -> RealTasks:
    found = RealTasks(X, y, task, np.empty(0, dtype=np.int64))
    found.feature_names = features
    found.task_names = tasks
    return found


# --- the data sets ----------------------------------------------------------------------------------------------------

SCHOOL_FEATURES = [
    *(f"year-{k}" for k in range(3)),
    "per_fsm-0",
    "per_vr1band-0",
    *(f"gender-{k}" for k in range(2)),
    *(f"vrband-{k}" for k in range(3)),
    *(f"ethnic_group-{k}" for k in range(11)),
    *(f"school_gender-{k}" for k in range(3)),
    *(f"school_denomination-{k}" for k in range(3)),
]


@described_by(FILES.format("``school.npz`` or MALSAR's ``school.mat``"))
def fetch_school(folder: Any = None, download: bool = True) -> RealTasks:
    """Exam scores of 15,362 pupils of 139 London schools, a task per school (regression, 27 features).

    Bakker & Heskes, JMLR 4 (2003); Argyriou, Evgeniou & Pontil, Machine Learning 73 (2008).

    Returns
    -------
    RealTasks
        ``y`` between 1 and 70. Nothing is scaled.
    """
    arrays = _fetch("school", folder, download)
    return _stacked(arrays, arrays["y"].astype(np.float64), SCHOOL_FEATURES, "school")


@described_by(FILES.format("``landmine.npz`` or ``LandmineData.mat``"))
def fetch_landmine(folder: Any = None, download: bool = True) -> RealTasks:
    """Landmines in radar images of 29 fields, a task per field (two classes, 9 features, 14,820 rows).

    Xue, Liao, Carin & Krishnapuram, JMLR 8 (2007). Fields 1 to 15 are foliated, 16 to 29 bare earth.

    Returns
    -------
    RealTasks
        ``y`` is +1 (mine) or -1 (clutter). Nothing is scaled.
    """
    arrays = _fetch("landmine", folder, download)
    return _stacked(arrays, np.where(arrays["y"] > 0, 1.0, -1.0), _numbered("image feature", 9), "field")


PARKINSONS_FEATURES = (
    "age,sex,test_time,Jitter(%),Jitter(Abs),Jitter:RAP,Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,"
    "Shimmer:APQ5,Shimmer:APQ11,Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE"
)


@described_by(FILES.format("``parkinsons.npz`` or ``parkinsons_updrs.data``"))
def fetch_parkinsons(target: str = "motor", folder: Any = None, download: bool = True) -> RealTasks:
    """Parkinson's disease from the voice: 42 patients, a task per patient (regression, 19 features, 5,875 rows).

    Tsanas, Little, McSharry & Ramig, IEEE Trans. Biomedical Engineering 57 (2010); UCI repository, CC BY 4.0.

    Parameters
    ----------
    target : {"motor", "total"}
        Which score (UPDRS) to predict.

    Returns
    -------
    RealTasks
        Age and sex are constant within a task. Nothing is scaled.
    """
    if target not in ("motor", "total"):
        raise ValueError(f"target={target!r}: the scores are 'motor' and 'total'.")
    arrays = _fetch("parkinsons", folder, download)
    y = arrays["Y"][:, ("motor", "total").index(target)].astype(np.float64)
    return _stacked(arrays, y, PARKINSONS_FEATURES.split(","), "patient")


@described_by(FILES.format("``sarcos.npz`` or ``sarcos_inv_test.mat``"))
def fetch_sarcos(folder: Any = None, download: bool = True) -> RealTasks:
    """Torques of a robot arm with seven joints: one matrix shared by 7 outputs (4,449 rows, 21 features).

    The test part of the SARCOS data. Vijayakumar & Schaal, ICML 2000; Rasmussen & Williams, Gaussian Processes for
    Machine Learning (2006).

    Returns
    -------
    RealTasks
        ``y`` of shape (4449, 7), ``task`` None.
    """
    arrays = _fetch("sarcos", folder, download)
    X, y = (np.asfortranarray(arrays[name], dtype=np.float64) for name in ("X", "Y"))
    names = [f"{what} {joint}" for what in ("position", "velocity", "acceleration") for joint in range(1, 8)]
    return _real(X, y, None, names, _numbered("torque", 7))


def fetch_mnist_pairs(n_each: int = 1500, folder: Any = None, split: str = "train") -> RealTasks:
    """MNIST-MTL of Widmer et al. (2012): three tasks, 1 against 0, 7 against 9, 2 against 8 (784 pixels).

    LeCun, Bottou, Bengio & Haffner, Proceedings of the IEEE 86 (1998).

    Parameters
    ----------
    n_each : int, default=1500
        Images of each digit, the first of the file; the paper's 9,000 rows by default.
    folder : path, optional
        Folder that holds ``mnist.npz``; by default TASKSIEVE_DATA.
    split : {"train", "test"}

    Returns
    -------
    RealTasks
        ``X`` is uint8, 0 to 255; ``y`` +1 for the first digit of the pair.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split={split!r}: there are 'train' and 'test'.")
    arrays = _fetch("mnist", folder, download=False)
    part = arrays["split"] == ("train", "test").index(split)
    pairs = ((1, 0), (7, 9), (2, 8))
    chosen = [[np.flatnonzero(part & (arrays["y"] == digit))[:n_each] for digit in pair] for pair in pairs]
    tasks = _two_class_tasks(arrays["X"], chosen)
    names = [f"pixel ({j // 28}, {j % 28})" for j in range(784)]
    return _real(tasks.X, tasks.y, tasks.task, names, [f"{one} against {other}" for one, other in pairs])


def fetch_tdt2(
    n_each: int = 50, folder: Any = None, random_state: int | np.random.Generator | None = 0
) -> RealTasks:
    """News of 30 topics as Wang & Ye (2015) use them: each topic against others (36,093 words that occur).

    Cai, He & Han, IEEE Trans. Knowledge and Data Engineering 17 (2005).

    Parameters
    ----------
    n_each : int, default=50
        Documents of the topic and of other topics in each task.
    folder : path, optional
        Folder that holds ``tdt2.npz``; by default TASKSIEVE_DATA.
    random_state : int, Generator or None
        Seed of the choice of documents.

    Returns
    -------
    RealTasks
        ``X`` sparse (CSC), counts; ``y`` +1 or -1.
    """
    arrays = _fetch("tdt2", folder, download=False)
    parts = (arrays["data"].astype(np.float64), arrays["indices"].astype(np.int32), arrays["indptr"])
    counts = sparse.csr_matrix(parts, shape=tuple(arrays["shape"].tolist()))
    occurs = np.flatnonzero(np.diff(counts.tocsc().indptr))
    tasks = one_vs_rest_tasks(counts[:, occurs], arrays["y"], n_each, random_state)
    words = [f"word {j}" for j in occurs.tolist()]
    return _real(tasks.X, tasks.y, tasks.task, words, _numbered("topic", int(arrays["y"].max()) + 1))


def _numbered(word: str, count: int) -> list[str]:
    return [f"{word} {k + 1}" for k in range(count)]


def _stacked(arrays: Arrays, y: np.ndarray, features: list[str], noun: str) -> RealTasks:
    X, task = np.asfortranarray(arrays["X"], dtype=np.float64), arrays["task"].astype(np.int64)
    return _real(X, y, task, features, _numbered(noun, task.max() + 1))


def one_vs_rest_tasks(
    X: Any,
    labels: np.ndarray,
    n_each: int = 50,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    """One task per class, each on rows of its own: ``n_each`` rows of it (+1) against ``n_each`` others (-1).

    So Wang & Ye (2015) make tasks of TDT2 (50 + 50 documents of 30 categories) and of the Animal data.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n, n_features)
        All rows.
    labels : array of shape (n,)
        Their classes.
    n_each : int
        Positive and negative rows of each task; a class with fewer rows gives all it has.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        A dense ``X`` becomes Fortran ordered, a sparse one CSC; ``support`` is empty.
    """
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)

    def drawn(candidates: np.ndarray) -> np.ndarray:
        return rng.choice(candidates, min(n_each, candidates.size), replace=False)

    every = np.unique(labels)
    rows = [[drawn(np.flatnonzero(labels == own)), drawn(np.flatnonzero(labels != own))] for own in every]
    return _two_class_tasks(X, rows)


def _two_class_tasks(X: Any, rows: list[list[np.ndarray]]) -> TaskDataset:
    """A task for each pair of rows: those of class +1 and those of class -1."""
    order = np.concatenate([part for pair in rows for part in pair])
    y = np.concatenate(
        [np.full(part.size, sign) for pair in rows for part, sign in zip(pair, (1.0, -1.0), strict=True)]
    )
    task = np.repeat(np.arange(len(rows)), [sum(part.size for part in pair) for pair in rows])
    stacked = X.tocsr()[order].tocsc() if sparse.issparse(X) else np.asfortranarray(np.asarray(X)[order])
    return TaskDataset(stacked, y, task, np.empty(0, dtype=np.int64))


def load_digits_tasks(n_each: int = 50, random_state: int | np.random.Generator | None = 0) -> TaskDataset:
    """Ten one-vs-rest tasks on scikit-learn's embedded 8 x 8 digits, each on rows of its own.

    Parameters
    ----------
    n_each : int
        Images of the digit and of other digits in each task.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``X`` of shape (20 * n_each, 64): pixels 0 to 16; ``y`` +1 or -1; ``task`` is the digit.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    return one_vs_rest_tasks(digits.data, digits.target, n_each, random_state)


def data_folder() -> Path:
    """Folder of the real data sets: the environment variable TASKSIEVE_DATA, or ``../shared/datasets``.

    The default is taken relative to the checkout of the project that holds the current directory, or that
    this module was loaded from.

    Returns
    -------
    pathlib.Path
        An existing folder.

    Raises
    ------
    FileNotFoundError
        Names the variable to set.
    """
    named = os.environ.get("TASKSIEVE_DATA")
    if named is not None:
        folder = Path(named).expanduser()
        if folder.is_dir():
            return folder
        raise FileNotFoundError(f"TASKSIEVE_DATA={named!r} is not a folder; set it to the folder of the .npz data sets")
    tried = []
    for start in (Path.cwd(), HERE):
        checkouts = (root for root in (start, *start.parents) if (root / "pyproject.toml").is_file())
        for root in islice(checkouts, 1):
            folder = root.parent / "shared" / "datasets"
            if folder.is_dir():
                return folder
            tried.append(str(folder))
    raise FileNotFoundError(
        "the real data sets were not found"
        + (f" in {' or '.join(dict.fromkeys(tried))}" if tried else "")
        + "; set the environment variable TASKSIEVE_DATA to the folder that holds them"
    )
