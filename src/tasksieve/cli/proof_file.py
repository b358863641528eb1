"""``certificate.npz`` of a run: written after the fit, to be checked with ``verify.py``."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from .. import verify
from ..genotypes import Dosages
from ..proof.certificate import Certificate
from ..runs.folder import PROOF
from ..tables import table_format
from ..tables.packed import PACKED
from ..tables.recipe import table_recipe
from ..tasks.cluster import ClusterMatrix
from .chunked_source import LEAVING_OUT
from .files import several_files, title
from .genotype_proof import DOSAGES, MOST_CALLS, genotype_recipe
from .genotype_proof import reads_differently as genotypes_differ
from .genotype_source import GenotypeSource
from .messages import in_words
from .results import Fitted
from .run import Job
from .table_source import TableSource

# A recipe is tried on tables of text up to this size; it is read by the verifier, which takes its time.
TRIED_BYTES = 1 << 25
# Rows times values up to which all values of a path are certified: a few seconds, as long as verifying them takes.
MOST_NUMBERS = 500_000
# Bytes of X that are brought here from a cluster for it.
MOST_FETCHED = 1 << 30


# Of tables that are no plain CSV files.
ELSEWHERE = "verify.py knows CSV files in UTF-8 with decimal points; tasksieve verify reads this table as the fit did"


def write_proof(job: Job, fitted: Fitted) -> None:
    """The certificate of all values of the run, of the chosen one where that would take long; where there is none, the
    run says why (`Job.lacks_proof`)."""
    problem = job.problem
    if job.source.no_proof:
        job.lacks_proof(job.source.no_proof)
        return
    if isinstance(problem.X, ClusterMatrix) and problem.X.nbytes > MOST_FETCHED:
        job.lacks_proof("all of X would have to come here once more; model.certificate in Python writes it")
        return
    source = job.source if isinstance(job.source, GenotypeSource) else None
    if source is not None and problem.X.n_rows * problem.X.n_variants > MOST_CALLS:
        many = f"{problem.X.n_rows:,} people and {problem.X.n_variants:,} variants take many minutes"
        job.lacks_proof(f"{many}; model.certificate in Python writes it")
        return
    whole = fitted.path is not None
    if whole and len(fitted.path) * problem.n_labels > MOST_NUMBERS:
        if job.config["command"] != "fit":
            job.lacks_proof("the path has many rows and values; in Python, path.certificate writes it")
            return
        whole = False
        job.display.log(f"{PROOF} is about the chosen value; path.certificate in Python writes that of all values")
    try:
        with job.noting_warnings():
            certificate = _certificate(job, fitted, whole)
    except (ValueError, MemoryError, ArithmeticError, verify.Mismatch) as error:
        why = in_words(error) or "not enough memory"
        job.lacks_proof(why.replace("there is no certificate: ", "").removesuffix("."))
        return
    about = certificate.header["about"]
    if job.config["command"] == "fit":
        about["chosen"] = fitted.chosen if whole else 0
    about["table"] = title(job.config["table"])
    certificate.header["features"] = list(problem.encoding.feature_names)
    if source is not None:
        _add_genotype_recipe(job, source, certificate)
    else:
        _add_recipe(job, certificate)
    certificate.save(job.folder / PROOF)


def _certificate(job: Job, fitted: Fitted, whole: bool) -> Certificate:
    """Of all values or of the model; of what is shown as the answer, that its features are needed, too."""
    answer: Any = fitted.path if whole else fitted.model
    asked: dict[str, Any] = {}
    if job.config["command"] == "fit" and "need" in signature(answer.certificate).parameters:
        asked = {"need": fitted.chosen if whole else True}
    rows = job.problem.row_arguments(groups=False)
    found: Certificate = answer.certificate(job.problem.X, job.problem.y, **rows, **asked)
    return found


def _add_recipe(job: Job, certificate: Certificate) -> None:
    """How X was read from the table, if the verifier reads the same from it."""
    config = job.config
    if several_files(config):
        job.display.log(f"{PROOF} does not say how several files were read; tasksieve verify reads them as the fit did")
        return
    if any(key in config for key in LEAVING_OUT):
        job.display.log(f"{PROOF} does not say which rows were left out; tasksieve verify reads them as the fit did")
        return
    table = Path(config["table"])
    if not isinstance(job.source, TableSource):
        return
    if (config.get("format") or table_format(table)) != "csv":
        job.display.log(f"{PROOF} does not say how the table was read: {ELSEWHERE}")
        return
    roles = {key: config.get(key) for key in ("task", "weights", "offset", "separator", "encoding", "decimal")}
    recipe = table_recipe(job.problem, table, drop=config["missing"] in ("drop", "patterns"), **roles)
    if recipe is None:
        job.display.log(f"{PROOF} does not say how the table was read: {ELSEWHERE}")
        return
    certificate.header["table"] = recipe
    if table.suffix.lower() in PACKED or table.stat().st_size > TRIED_BYTES:
        return
    wrong = reads_differently(certificate, str(table))
    if wrong:
        del certificate.header["table"]
        job.display.log(f"{PROOF} does not say how the table was read: {wrong}")


def _add_genotype_recipe(job: Job, source: GenotypeSource, certificate: Certificate) -> None:
    """Which people, variants and columns of the files, if the verifier finds the same by it."""
    if isinstance(source.problem.X, Dosages):
        job.display.log(f"{PROOF} is about the rounded dosages; {DOSAGES}")
        return
    certificate.header["genotypes"] = genotype_recipe(source)
    wrong = genotypes_differ(certificate, source)
    if wrong:
        del certificate.header["genotypes"]
        job.display.log(f"{PROOF} does not say how genotypes were read: {wrong}")


def reads_differently(certificate: Certificate, table: str) -> str | None:
    """What the verifier finds wrong with a table, if anything."""
    stated = verify.read_certificate(certificate.to_bytes())
    try:
        data: dict[str, Any] = verify.read_table(stated, table)
        rows = [data.pop(name, None) for name in ("X", "y", "task", "sample_weight", "offset")]
        wrong = verify.check_digests(stated, verify.arrange(stated, *rows))
    except (verify.Mismatch, verify.Unreadable) as error:
        return str(error)
    return wrong[0] if wrong else None
