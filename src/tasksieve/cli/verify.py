"""``tasksieve verify``: whether the data prove what a run claims."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import verify as verifier
from ..federated.errors import FederatedError
from ..federated.plan import Plan, PlanError
from ..federated.statement import check_signatures
from ..runs import RunError, RunFolder
from ..runs.folder import CERTIFICATE, CONFIG, PROOF, STREAM, UNPROVED
from ..runs.inspected import chosen_value
from ..tables import TableError
from ..tables.packed import PACKED
from .config import check_config, read_config
from .exit_codes import OK, UsageError, say
from .files import Tables, expand_tables
from .genotype_proof import by_recipe, export_words, genotype_recipe, task_codes
from .genotype_source import GenotypeSource
from .in_json import in_json
from .options import Asked
from .progress import working
from .run_claims import compare_recipes, compare_run
from .source import Source
from .sources import source_kind

NOT_PROVED, UNREADABLE = 1, 2


def run_verify(asked: Asked) -> int:
    """Exit codes: 0 proved, 1 not proved, 2 could not be read."""
    if asked.value is not None and asked.every:
        raise UsageError("--value, --all: one or the other")
    try:
        return _verify(asked)
    except (verifier.Unreadable, TableError, OSError) as error:
        say(f"tasksieve: cannot be read: {error}")
        return UNREADABLE
    except (verifier.Mismatch, RunError) as error:
        if asked.json:
            print(in_json({"proved": False, "words": str(error)}))
        else:
            print(f"not proved:\n{error}")
        return NOT_PROVED


def _verify(asked: Asked) -> int:
    path, value, quiet = Path(asked.run), asked.value, asked.quiet
    kind = verifier.format_of(path) if path.is_file() else ""
    if kind == verifier.STATEMENT:
        return _verify_statement(asked)
    if asked.plan is not None:
        raise UsageError("--plan belongs to a statement.npz of sites")
    if kind == verifier.PART:
        return _verify_part(asked)
    folder = RunFolder(path) if path.is_dir() else None
    if folder is not None:
        if not (folder / PROOF).is_file():
            why = "its log.txt says why"
            if (folder / CERTIFICATE).is_file() and UNPROVED in (stated := folder.read_json(CERTIFICATE)):
                why = f"{stated[UNPROVED]}; the gap in {CERTIFICATE} is the solver's own number"
            if (folder / STREAM).is_file():
                why = "online models have none"
            elif folder.finished and not (folder / "model.json").is_file():
                why = "it holds findings and no model, of which something could be proved; tasksieve fit leaves one"
            raise verifier.Unreadable(f"{path} has no {PROOF} ({why})")
        path = folder / PROOF
    cert = verifier.read_certificate(path)
    if value is None and not asked.every:
        value = chosen_value(cert)
    if folder is not None:
        folder.verify()
    config = {} if folder is None else read_config(folder / CONFIG)
    if GenotypeSource.recognises(config) or (folder is None and cert.header.get("genotypes") is not None):
        return _verify_genotypes(asked, cert, folder, config, value)
    table = config.get("table") if asked.data is None else expand_tables([asked.data])
    if table is None:
        raise verifier.Unreadable(f"{asked.run} is a certificate alone: name the file of data with --data")
    with working("reading", quiet):
        rows, beyond = _read(cert, table, config), []
        if folder is not None:
            same = config.get("table") == table
            here = {**config, "table": table, "format": config.get("format") if same else None}
            source = _as_fitted(here, needed=rows is None)
            rows = _rows_of(source) if rows is None else rows
            _require_same(cert, _rows_of(source))
            beyond = compare_run(folder, cert, source, config, chosen_value(cert))
        elif rows is None:
            raise verifier.Unreadable("the certificate does not say how a table is read: give the run, or an npz file")
    if hasattr(rows["X"], "patterns"):  # with its holes
        rows["X"] = rows["X"].to_array()
    return _decide(asked, cert, rows, value, beyond)


def _decide(
    asked: Asked, cert: verifier.Certificate, rows: dict[str, Any], value: int | None, beyond: list[str]
) -> int:
    """Have the verifier check it, and say what it found."""
    with working("verifying", asked.quiet):
        X, y, progress = rows.pop("X"), rows.pop("y"), None if asked.quiet else _Lines()
        verdict = verifier.verify(cert, X, y, value=value, exact=asked.exact, progress=progress, **rows)
    return _say(asked, verdict, beyond, cert.header.get("features"))


def _say(
    asked: Asked, verdict: verifier.Verdict, beyond: list[str], names: Sequence[str] | None = None
) -> int:
    if asked.json:
        print(in_json(_content(verdict, beyond, names)))
    elif not asked.quiet or not verdict:
        print("\n".join([verdict.words, *beyond]))
    return OK if verdict.proved else NOT_PROVED


def _content(verdict: verifier.Verdict, beyond: list[str], names: Sequence[str] | None) -> dict[str, Any]:
    """The verdict for programs: of each value the numbers that the data bound, and what is proved of features."""
    numbers = ("alpha", "objective", "dual_value", "gap")
    values = [{"value": one.index, **{name: getattr(one, name) for name in numbers}} for one in verdict.values]
    needs = [
        {
            "value": one.value,
            "without": [str(names[j]) if names else str(j) for j in one.features],
            "worse_by": one.delta,
            "proved": not one.failures,
        }
        for one in verdict.needs
    ]
    words = "\n".join([verdict.words, *beyond])
    return {"proved": verdict.proved, "words": words, "values": values, "needs": needs}


def _verify_part(asked: Asked) -> int:
    """What a site says of its rows."""
    if asked.data is None:
        raise verifier.Unreadable(f"{asked.run} is the part of a site: name the file of its rows with --data")
    with working("reading", asked.quiet):
        part = verifier.read_part(asked.run)
        npz = asked.data.endswith(".npz")
        rows = verifier.read_arrays(asked.data) if npz else verifier.read_table(part.cert, asked.data)
    with working("verifying", asked.quiet):
        X, y, progress = rows.pop("X"), rows.pop("y"), None if asked.quiet else _Lines()
        verdict = verifier.verify_part(part, X, y, value=asked.value, exact=asked.exact, progress=progress, **rows)
    return _say(asked, verdict, [])


def _verify_statement(asked: Asked) -> int:
    """What all sites have signed, and what it adds up to."""
    if asked.plan is None:
        raise verifier.Unreadable(
            f"{asked.run} is a statement of sites: name the plan that has their keys with --plan. "
            "What the sums prove, whoever has sent them, verify.py statement says"
        )
    statement = verifier.read_statement(asked.run)
    verdict = verifier.verify_statement(statement, value=asked.value, exact=asked.exact)
    try:
        plan = Plan.read(asked.plan)
        check_signatures(statement, plan)
    except FederatedError as error:
        raise verifier.Mismatch(str(error)) from None
    except PlanError as error:
        raise verifier.Unreadable(str(error)) from None
    words = f"signed by all {plan.n_sites} sites of {asked.plan}; what they have signed adds up to these sums"
    return _say(asked, verdict, [words])


def _verify_genotypes(
    asked: Asked, cert: verifier.Certificate, folder: RunFolder | None, config: dict[str, Any], value: int | None
) -> int:
    """From .bed files by the verifier's own reader; others as the fit has read them. --data is the prefix of .bed files
    in the place of the run's."""
    if folder is None:
        raise verifier.Unreadable(f"{asked.run} is a certificate of genotypes alone: name the run, or use verify.py")
    stated, asked_config = cert.header.get("genotypes"), config
    if asked.data is not None:
        if stated is None:
            raise verifier.Unreadable(f"--data: {PROOF} does not say how genotypes were read")
        config = {key: own for key, own in config.items() if key not in ("pfile", "vcf_zarr", "bgen")}
        config["bfile"] = [asked.data]
    with working("reading", asked.quiet):
        source: Any = _as_fitted(config, needed=True)
        found = _rows_of(source)
        if stated is not None:
            compare_recipes(stated, genotype_recipe(source))
        if stated is not None and config.get("bfile"):
            rows, how = by_recipe(cert, config), []
        else:
            rows = {**found, "X": found["X"].readable(task_codes(found.get("task")))}
            how = [f"genotypes were read as the fit did; {export_words(source)}"]
        try:
            beyond = compare_run(folder, cert, source, asked_config, chosen_value(cert)) + how
        except RunError:
            _require_same(cert, rows)  # which is the better word, where the data are others
            raise
    return _decide(asked, cert, rows, value, beyond)


def _read(cert: verifier.Certificate, table: Tables, config: dict[str, Any]) -> dict[str, Any] | None:
    """X, y, task, ... by the verifier's own reader where the certificate says how; None where only the fit's reader
    can."""
    if isinstance(table, list) or isinstance(config.get("table"), list):
        several = isinstance(config.get("table"), list)
        if not several or isinstance(table, str):
            wanted = "one file for each task: a folder, or a glob" if several else "one file"
            raise verifier.Unreadable(f"--data: the run was fitted to {wanted}")
        return None
    packed = Path(table).suffix.lower() in PACKED
    if cert.header.get("table") is not None and not packed:
        return verifier.read_table(cert, table)
    beside = {"task": "task", "weights": "sample_weight", "offset": "offset"}
    plain = all(config.get(key) in (None, name) for key, name in {"target": ["y"], **beside}.items())
    if table.endswith(".npz") and plain:
        found = verifier.read_arrays(table)
        kept = {"X", "y", *(name for key, name in beside.items() if not config or config.get(key) is not None)}
        if config.get("missing", "error") == "error" and found["X"].ndim == 2:
            return {name: values for name, values in found.items() if name in kept}
    return None


def _as_fitted(config: dict[str, Any], needed: bool) -> Source:
    """The data as the options of a run read them; `needed` where nothing else has read them."""
    try:
        return source_kind(config)(config, check_config(config)).read()
    except (OSError, MemoryError):
        raise
    except Exception as error:  # options that were changed by hand may be anything
        if needed:
            raise verifier.Unreadable(f"the data, as the options of the run say: {error}") from None
        raise RunError(f"the options in {CONFIG} do not read the data: {error}") from None


def _rows_of(source: Source) -> dict[str, Any]:
    return {"X": source.matrix, "y": source.problem.y, **source.problem.row_arguments(groups=False)}


def _require_same(cert: verifier.Certificate, rows: dict[str, Any]) -> None:
    """Refuse other data than those of the certificate."""
    if hasattr(rows["X"], "patterns"):
        rows = {**rows, "X": rows["X"].to_array()}
    given = [rows.get(name) for name in ("X", "y", "task", "sample_weight", "offset")]
    wrong = verifier.check_digests(cert, verifier.arrange(cert, *given))
    if wrong:
        raise verifier.Mismatch("\n".join(wrong))


class _Lines:
    """Reports the progress of a long check to stderr."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, words: str) -> None:
        if time.monotonic() - self._last > 5.0:
            self._last = time.monotonic()
            say(f"verifying: {words}")
