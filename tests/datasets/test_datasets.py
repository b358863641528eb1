"""The generators make what they say: shapes, orders, moments; the same seed gives the same data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from tasksieve import datasets
from tasksieve.datasets import real, synthetic


def offset_correlation(X: np.ndarray, lag: int) -> float:
    """Mean correlation of features `lag` apart, over the features that vary."""
    Z = X.astype(float) - X.mean(axis=0)
    norm = np.linalg.norm(Z, axis=0)
    Z = Z[:, norm > 0] / norm[norm > 0]
    return float(np.mean(np.sum(Z[:, lag:] * Z[:, :-lag], axis=0)))


@pytest.mark.parametrize(("kind", "neighbour", "second"), [(1, 0.0, 0.0), (2, 0.5, 0.25)])
def test_wang_synthetic(kind: int, neighbour: float, second: float) -> None:
    X, y, task, support = datasets.make_wang_synthetic(
        kind, n_tasks=20, n_rows=25, n_features=200, random_state=3
    )
    assert X.shape == (500, 200)
    assert X.flags.f_contiguous
    assert X.dtype == np.float64
    assert task is not None
    np.testing.assert_array_equal(task, np.repeat(np.arange(20), 25))
    assert support.size == 20
    assert np.all(np.diff(support) > 0)
    assert abs(X.mean()) < 0.02
    assert abs(X.std() - 1) < 0.02
    assert abs(offset_correlation(X, 1) - neighbour) < 0.02
    assert abs(offset_correlation(X, 2) - second) < 0.02
    for t in range(20):  # each task is its true features plus noise of size 0.01
        rows = task == t
        coef, *_ = np.linalg.lstsq(X[rows][:, support], y[rows], rcond=None)
        rest = y[rows] - X[rows][:, support] @ coef
        assert np.sqrt(rest @ rest / (25 - 20)) < 0.03
        assert 0.3 < coef.std() < 2


def test_wang_synthetic_does_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    one = datasets.make_wang_synthetic(2, 4, 6, 90, random_state=0)
    monkeypatch.setattr(synthetic, "BLOCK_ENTRIES", 50)
    two = datasets.make_wang_synthetic(2, 4, 6, 90, random_state=0)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_allclose(one.y, two.y, rtol=1e-12)


def test_wang_synthetic_refuses_other_kinds() -> None:
    with pytest.raises(ValueError, match="kind=3"):
        datasets.make_wang_synthetic(3, n_features=20)


def test_same_seed_same_data() -> None:
    for make in (
        lambda seed: datasets.make_wang_synthetic(1, 3, 4, 20, seed),
        lambda seed: datasets.make_shared_regression(10, 20, 3, 2, random_state=seed),
        lambda seed: datasets.make_task_classification(3, 8, 20, 2, seed),
        lambda seed: datasets.make_genotypes(2, 5, 60, 3, random_state=seed),
        lambda seed: datasets.make_gong_synthetic(3, 10, 40, random_state=seed),
        lambda seed: datasets.make_heterogeneous_tasks(3, (5, 9), 40, 4, random_state=seed),
        lambda seed: datasets.make_gauss2d(50, 3, random_state=seed),
        lambda seed: datasets.make_dna_windows(50, random_state=seed),
        lambda seed: datasets.make_small_tasks(random_state=seed),
    ):
        first, second, other = make(1), make(1), make(2)
        np.testing.assert_array_equal(first.X, second.X)
        np.testing.assert_array_equal(first.y, second.y)
        assert not np.array_equal(first.y, other.y)


def test_small_tasks_have_the_labels_asked_for() -> None:
    X, y, task, support = datasets.make_small_tasks(effects=[2.0, -1.0, 0.0], noise=[0.0, 0.0, 0.5])
    assert X.shape == (90, 8)
    assert X.flags.f_contiguous
    assert support.tolist() == [0]
    assert task is not None
    np.testing.assert_array_equal(y[task == "a"], 2.0 * X[task == "a", 0])
    np.testing.assert_array_equal(y[task == "b"], -X[task == "b", 0])
    assert abs(np.corrcoef(y[task == "c"], X[task == "c", 0])[0, 1]) < 0.5
    same, classes, _, _ = datasets.make_small_tasks(["low", "mid", "high"], effects=[2.0, -1.0, 0.0], noise=[0, 0, 0.5])
    np.testing.assert_array_equal(same, X)
    assert [int(np.sum(classes == label)) for label in ("low", "mid", "high")] == [30, 30, 30]
    assert y[classes == "low"].max() < y[classes == "mid"].min()
    assert y[classes == "mid"].max() < y[classes == "high"].min()
    counts = datasets.make_small_tasks("counts", effects=[0.0]).y
    assert counts.dtype.kind == "i"
    assert counts.min() >= 0
    assert datasets.make_small_tasks(effects=[0.0]).support.size == 0
    with pytest.raises(ValueError, match="labels='numbers'"):
        datasets.make_small_tasks("numbers")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="27 entries"):
        datasets.make_small_tasks(effects=[1.0] * 27)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_shared_regression(correlation: float) -> None:
    X, Y, task, support = datasets.make_shared_regression(300, 400, 7, 5, 3.0, correlation, 1)
    assert task is None
    assert Y.shape == (300, 7)
    assert X.flags.f_contiguous
    assert abs(offset_correlation(X, 1) - correlation) < 0.02
    signal = X[:, support] @ np.linalg.lstsq(X[:, support], Y, rcond=None)[0]
    assert abs(np.linalg.norm(signal) / np.linalg.norm(Y - signal) - 3.0) < 0.2


def test_task_classification_has_both_classes() -> None:
    for n_rows in (2, 3, 50):
        X, y, task, _ = datasets.make_task_classification(40, n_rows, 30, 5, random_state=n_rows)
        assert X.shape == (40 * n_rows, 30)
        assert task is not None
        for t in range(40):
            assert set(y[task == t]) == {-1.0, 1.0}


def test_genotypes() -> None:
    X, y, task, support = datasets.make_genotypes(10, 40, 2000, random_state=5)
    assert X.shape == (400, 2000)
    assert X.dtype == np.int8
    assert X.flags.f_contiguous
    assert set(np.unique(X)) == {0, 1, 2}
    assert support.size == 20
    assert y.shape == task.shape == (400,)  # type: ignore[union-attr]
    frequency = X.mean(axis=0) / 2
    assert np.quantile(frequency, 0.01) > 0.02
    assert np.quantile(frequency, 0.99) < 0.56
    assert 0.12 < np.median(frequency) < 0.2  # 1/f between 0.05 and 0.5: median 0.158
    heterozygous = np.mean(X == 1, axis=0)  # Hardy-Weinberg: 2 f (1 - f)
    assert abs(np.mean(heterozygous - 2 * frequency * (1 - frequency))) < 0.01
    near, far, unlinked = (offset_correlation(X, lag) for lag in (1, 10, 1000))
    assert near > far > 0.05
    assert near > 0.4
    assert abs(unlinked) < 0.02


def test_gong_synthetic() -> None:
    """The paper's recipe, number by number."""
    X, y, task, support = datasets.make_gong_synthetic(n_rows=400, random_state=0)
    assert task is not None
    assert X.shape == (4000, 200)
    assert X.flags.f_contiguous
    assert support.size == 10
    blocks = X.reshape(10, 400, 200)
    np.testing.assert_allclose(np.linalg.norm(blocks, axis=1), 1.0)
    correlation = np.mean([np.corrcoef(block.T)[np.triu_indices(200, 1)].mean() for block in blocks])
    assert abs(correlation - 0.5) < 0.05
    for t in range(10):
        rows = task == t
        coef, residual, *_ = np.linalg.lstsq(X[rows][:, support], y[rows], rcond=None)
        assert np.abs(coef).max() < 10 + 5 * 2 * np.sqrt(2)
        spread = np.sqrt(residual[0] / (400 - 10))
        np.testing.assert_allclose(spread, 2 * np.sqrt(2) * 2 ** (-t / 4), rtol=0.2)


def test_heterogeneous_tasks() -> None:
    _, y, task, support = datasets.make_heterogeneous_tasks(8, (40, 90), 60, 10, random_state=0)
    assert task is not None
    sizes = np.bincount(task)
    assert sizes.min() >= 40
    assert sizes.max() <= 90
    assert len(set(sizes)) > 1
    assert len(support) <= 10
    assert np.all(np.diff(task) >= 0)
    spread = [y[task == t].std() for t in range(8)]
    assert max(spread) > 3 * min(spread)
    same = datasets.make_heterogeneous_tasks(
        4, (60, 60), 30, 5, overlap=1.0, noise=(0.01, 0.01), random_state=1
    )
    assert same.task is not None
    for t in range(4):  # with little noise the true features explain a task wholly
        rows = same.task == t
        design = np.c_[np.ones(60), same.X[rows][:, same.support]]
        rest = same.y[rows] - design @ np.linalg.lstsq(design, same.y[rows], rcond=None)[0]
        assert rest.std() < 0.03 * same.y[rows].std()
    with pytest.raises(ValueError, match="overlap"):
        datasets.make_heterogeneous_tasks(overlap=0.0)


def test_gauss2d() -> None:
    X, y, task, support = datasets.make_gauss2d(30_000, 3, distance=2.0, turn=0.5, random_state=0)
    assert task is not None
    assert X.shape == (30_000, 2)
    assert support.tolist() == [0, 1]
    for t in range(3):
        rows = task == t
        assert abs(y[rows].sum()) <= 1, "balanced"
        between = X[rows & (y > 0)].mean(axis=0) - X[rows & (y < 0)].mean(axis=0)
        np.testing.assert_allclose(between, [2 * np.cos(0.5 * t), 2 * np.sin(0.5 * t)], atol=0.08)
        np.testing.assert_allclose(np.cov(X[rows & (y > 0)].T), np.eye(2), atol=0.08)


def test_dna_windows() -> None:
    X, y, task, support = datasets.make_dna_windows(8_000, random_state=0)
    assert task is not None
    assert X.shape == (8_000,)
    assert X.dtype == "S141"
    letters = X.view("S1").reshape(8_000, 141)
    assert set(np.unique(letters)) == {b"A", b"C", b"G", b"T"}
    assert abs(np.mean(y > 0) - 0.2) < 0.03
    # near its middle the consensus shows in positives, and there only
    for t in range(4):
        rows = task == t
        strongest = support[len(support) // 2]
        for sign, low, high in ((1, 0.45, 0.85), (-1, 0.2, 0.32)):
            column = letters[rows & (y == sign), strongest]
            frequency = max(np.mean(column == base) for base in np.unique(letters))
            assert low < frequency < high
    with pytest.raises(ValueError, match="motif"):
        datasets.make_dna_windows(10, length=5, motif=6)


def test_dna_windows_share_a_consensus() -> None:
    consensus = datasets.evolve_consensus(random_state=0)
    assert consensus.shape == (4, 24)
    assert consensus.max() == 3
    sets = [datasets.make_dna_windows(20_000, consensus=consensus, random_state=seed) for seed in (1, 2)]
    assert not np.array_equal(sets[0].X, sets[1].X)
    middle = 24 // 2
    for X, y, task, support in sets:
        assert task is not None
        column = X.view("S1").reshape(-1, 141)[:, support[middle]]
        for t in range(4):
            planted = column[(task == t) & (y > 0)] == b"ACGT"[consensus[t, middle] :][:1]
            assert 0.55 < np.mean(planted) < 0.75  # kept with probability 0.55, hit by chance besides
    with pytest.raises(ValueError, match="consensus must have shape"):
        datasets.make_dna_windows(10, motif=6, consensus=consensus)


def test_one_vs_rest_tasks() -> None:
    labels = np.repeat([3, 5, 9], [10, 4, 30])
    X = np.arange(44.0)[:, None] + np.zeros((1, 3))
    dense = datasets.one_vs_rest_tasks(X, labels, n_each=6, random_state=0)
    assert dense.task is not None
    for t, label in enumerate([3, 5, 9]):
        rows = dense.task == t
        origin = dense.X[rows, 0].astype(int)
        assert len(set(origin)) == rows.sum()
        np.testing.assert_array_equal(labels[origin] == label, dense.y[rows] > 0)
        assert (dense.y[rows] > 0).sum() == (4 if label == 5 else 6)
    other = datasets.one_vs_rest_tasks(sparse.csr_matrix(X), labels, n_each=6, random_state=0)
    assert other.X.format == "csc"
    np.testing.assert_array_equal(other.X.toarray(), dense.X)


def test_digits_tasks() -> None:
    X, y, task, support = datasets.load_digits_tasks(n_each=20)
    assert X.shape == (400, 64)
    assert X.flags.f_contiguous
    assert y.sum() == 0
    assert support.size == 0
    np.testing.assert_array_equal(np.bincount(task), 40)  # type: ignore[arg-type]


def test_data_folder_names_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("TASKSIEVE_DATA", str(tmp_path))
    assert datasets.data_folder() == tmp_path
    monkeypatch.setenv("TASKSIEVE_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match="TASKSIEVE_DATA"):
        datasets.data_folder()
    monkeypatch.delenv("TASKSIEVE_DATA")
    monkeypatch.setattr(real, "HERE", tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="TASKSIEVE_DATA"):
        datasets.data_folder()


def test_data_folder_beside_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    inner = tmp_path / "checkout" / "benchmarks"
    inner.mkdir(parents=True)
    (tmp_path / "checkout" / "pyproject.toml").write_text("")
    (tmp_path / "shared" / "datasets").mkdir(parents=True)
    monkeypatch.delenv("TASKSIEVE_DATA", raising=False)
    monkeypatch.chdir(inner)
    assert datasets.data_folder() == tmp_path / "shared" / "datasets"


# --- real data ------------------------------------------------------------------------------------------------


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data folder, no earlier downloads."""
    monkeypatch.delenv("TASKSIEVE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(real, "HERE", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small_school(path: Path) -> dict[str, np.ndarray]:
    """A file like MALSAR's school.mat with three schools; what should be read from it."""
    rng = np.random.default_rng(0)
    sizes = (4, 6, 3)
    X = [np.c_[rng.integers(0, 50, (n, 27)).astype(float), np.ones(n)] for n in sizes]
    y = [rng.integers(1, 71, (n, 1)).astype(float) for n in sizes]
    cells = {"X": np.empty((1, 3), dtype=object), "Y": np.empty((1, 3), dtype=object)}
    for t in range(3):
        cells["X"][0, t], cells["Y"][0, t] = X[t], y[t]
    savemat(path, cells)
    return {
        "X": np.vstack(X)[:, :27],
        "y": np.concatenate(y).ravel(),
        "task": np.repeat(np.arange(3), sizes),
    }


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """An HTTP server of a folder, on this machine only."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_fetch_downloads_once_and_checks_the_numbers(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    pytest.importorskip("pooch")
    remote = nowhere / "remote"
    remote.mkdir()
    arrays = small_school(remote / "school.mat")
    with served(remote) as address:
        source = replace(real.SOURCES["school"], url=f"{address}/school.mat", checksum=real.checksum(arrays))
        monkeypatch.setitem(real.SOURCES, "school", source)
        first = datasets.fetch_school()
    np.testing.assert_array_equal(first.X, arrays["X"])
    np.testing.assert_array_equal(first.y, arrays["y"])
    np.testing.assert_array_equal(first.task, arrays["task"])
    assert first.X.flags.f_contiguous
    assert first.task_names == ["school 1", "school 2", "school 3"]
    assert (nowhere / "cache" / "tasksieve" / "school.mat").is_file()
    again = datasets.fetch_school()  # the server is gone
    np.testing.assert_array_equal(again.X, first.X)


def test_fetch_refuses_other_numbers(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    pytest.importorskip("pooch")
    remote = nowhere / "remote"
    remote.mkdir()
    small_school(remote / "school.mat")
    with served(remote) as address:
        monkeypatch.setitem(
            real.SOURCES, "school", replace(real.SOURCES["school"], url=f"{address}/school.mat")
        )
        with pytest.raises(ValueError, match="does not hold the school data"):
            datasets.fetch_school()
        assert not (nowhere / "cache" / "tasksieve" / "school.mat").exists(), "what is wrong is not kept"
        monkeypatch.setitem(
            real.SOURCES, "school", replace(real.SOURCES["school"], url=f"{address}/absent.mat")
        )
        with pytest.raises(OSError, match=r"could not be downloaded.*MALSAR"):
            datasets.fetch_school()


def test_fetch_says_where_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    with pytest.raises(FileNotFoundError, match="MALSAR"):
        datasets.fetch_school(download=False)
    with pytest.raises(FileNotFoundError, match=r"Deng Cai.*TASKSIEVE_DATA"):
        datasets.fetch_tdt2()
    with pytest.raises(FileNotFoundError, match="folder='absent'"):
        datasets.fetch_school(folder="absent")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'tasksieve\[data\]'"):
        datasets.fetch_landmine()
    with pytest.raises(ValueError, match="target"):
        datasets.fetch_parkinsons("other")
    with pytest.raises(ValueError, match="split"):
        datasets.fetch_mnist_pairs(split="other")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"random bytes that are no archive"])
def test_broken_files_are_named(nowhere: Path, content: bytes) -> None:
    for name in ("school.npz", "school.mat"):
        folder = nowhere / name
        folder.mkdir()
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=name):
            datasets.fetch_school(folder=folder)


def test_pickled_archives_are_not_opened(nowhere: Path) -> None:
    np.savez(nowhere / "school.npz", X=np.array([{"a": 1}], dtype=object), y=np.zeros(1), task=np.zeros(1))
    with pytest.raises(ValueError, match=r"school\.npz"):
        datasets.fetch_school(folder=nowhere)


def test_readers_of_the_other_sources(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    """Files of the sources' shapes, a few rows each."""
    rng = np.random.default_rng(0)
    cells = {"feature": np.empty((1, 2), dtype=object), "label": np.empty((1, 2), dtype=object)}
    for t, n in enumerate((5, 3)):
        cells["feature"][0, t] = rng.standard_normal((n, 9))
        cells["label"][0, t] = np.arange(n)[:, None] % 2
    savemat(nowhere / "LandmineData.mat", cells)
    table = np.c_[[1, 1, 3, 3], rng.standard_normal((4, 21)).round(3)]
    header = "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,...\n"
    lines = (",".join(f"{value:g}" for value in row) for row in table)
    (nowhere / "parkinsons_updrs.data").write_text(header + "\n".join(lines) + "\n")
    arm = rng.standard_normal((6, 28))
    savemat(nowhere / "sarcos_inv_test.mat", {"sarcos_inv_test": arm})
    for name in ("landmine", "parkinsons", "sarcos"):
        source = real.SOURCES[name]
        monkeypatch.setitem(
            real.SOURCES, name, replace(source, checksum=real.checksum(source.read(nowhere / source.file)))
        )
    landmine = datasets.fetch_landmine(nowhere)
    assert landmine.task is not None
    assert landmine.task.tolist() == [0] * 5 + [1] * 3
    assert landmine.y.tolist() == [-1, 1, -1, 1, -1, -1, 1, -1]
    total = datasets.fetch_parkinsons("total", nowhere)
    assert total.task is not None
    assert total.task.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(total.y, table[:, 5])
    np.testing.assert_allclose(total.X, table[:, [1, 2, 3, *range(6, 22)]])
    assert len(total.feature_names) == 19
    sarcos = datasets.fetch_sarcos(nowhere)
    np.testing.assert_array_equal(sarcos.X, arm[:, :21])
    np.testing.assert_array_equal(sarcos.y, arm[:, 21:])
    assert sarcos.task is None


def test_real_data_where_they_are() -> None:
    """Against the prepared archives, where this machine has them."""
    try:
        folder = datasets.data_folder()
    except FileNotFoundError:
        pytest.skip("no folder of real data here: set TASKSIEVE_DATA")
    shapes = {
        datasets.fetch_school: (15362, 27, 139),
        datasets.fetch_landmine: (14820, 9, 29),
        datasets.fetch_parkinsons: (5875, 19, 42),
        datasets.fetch_sarcos: (4449, 21, 7),
        datasets.fetch_mnist_pairs: (9000, 784, 3),
        datasets.fetch_tdt2: (3000, 36093, 30),
    }
    for fetch, (n_rows, n_features, n_tasks) in shapes.items():
        found = fetch(folder=folder)
        assert found.X.shape == (n_rows, n_features)
        assert len(found.feature_names) == n_features
        assert len(found.task_names) == n_tasks
        assert found.y.shape[0] == n_rows
        if found.task is not None:
            assert np.all(np.diff(found.task) >= 0)
            assert found.task.max() + 1 == n_tasks
