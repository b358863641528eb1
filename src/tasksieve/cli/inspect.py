"""``tasksieve inspect``: what a run folder, a certificate, a saved online model, a table or genotypes hold."""

from __future__ import annotations

import os
from typing import Any

from ..runs import RunError
from ..runs.inspected import inspect_path
from ..tables import TableError
from .diff import listed, option_name, setting
from .exit_codes import OK, UsageError
from .files import READING
from .in_json import in_json
from .inspect_genotypes import genotype_lines, inspect_genotypes
from .inspect_table import inspect_file, table_lines
from .new_people import names_genotypes
from .options import Asked, gibibytes

NAMED = 15  # features that are named


def run_inspect(asked: Asked) -> int:
    """Say what is there, without believing more of it than was checked."""
    found = _inspected(asked)
    if "settings" in found:
        found["settings"] = {option_name(key): value for key, value in found["settings"].items()}
    if asked.json:
        print(in_json(found))
    else:
        write = table_lines if "tables" in found else genotype_lines if "genotypes" in found else inspection_lines
        print("\n".join(write(found)))
    return OK


def _inspected(asked: Asked) -> dict[str, Any]:
    """A run, a certificate, a model, or a table: an .npz file may be any of these."""
    options = {key: getattr(asked, key) for key in (*READING, "sheet")}
    given = [key for key, value in options.items() if value not in (None, [])]
    path = asked.run
    if names_genotypes(asked):
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')}: is for a table, not for genotypes")
        return inspect_genotypes(asked)
    if path is None:
        genotypes = "genotypes (--bfile, --pfile, --vcf-zarr, --bgen)"
        raise UsageError(f"name a run, a certificate, a model, a table, or {genotypes}")
    if os.path.isfile(path) and (given or not path.lower().endswith(".npz")):
        return inspect_file(asked)
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')}: is for a table; {path} is no file")
    try:
        return inspect_path(path, gibibytes(asked.max_memory))
    except RunError as error:
        if not os.path.isfile(path):
            raise
        try:
            return inspect_file(asked)
        except TableError:
            raise error from None


def inspection_lines(found: dict[str, Any]) -> list[str]:
    """A few paragraphs for people."""
    lines = [f"{found['path']}: {found['what']}"]
    for title in ("model", "data", "certificate", "quality", "digests"):
        if found.get(title):
            lines += ["", title, *pairs(found[title])]
    selected = found.get("selected")
    if selected is not None:
        per = f"; strengths per {selected['per']}" if "per" in selected else ""
        lines += ["", f"features in use: {selected['number']:,} of {selected['of']:,}{per}"]
        lines += strengths(selected["strongest"], selected["number"])
        n_covariates = len(selected["covariates"])
        if n_covariates:
            lines += ["", f"covariates, not penalised: {n_covariates:,}"]
            lines += strengths(selected["covariates"], n_covariates)
    if found.get("settings"):
        lines += ["", "settings", *pairs({key: setting(value) for key, value in found["settings"].items()})]
    if found.get("files"):
        sizes = {file["file"]: f"{size(file['bytes']):>9}  {file['state']}" for file in found["files"]}
        lines += ["", "files", *pairs(sizes)]
    if found.get("versions"):
        lines += ["", "versions", *pairs(found["versions"])]
    return lines


def strengths(features: list[dict[str, Any]], n: int) -> list[str]:
    """The first of n features with their strengths, in a line; nothing where there is none."""
    names = [f"{one['feature']} ({one['strength']:.3g})" for one in features]
    return [f"  {listed(names, NAMED, n)}"] if names else []


def pairs(content: dict[str, Any]) -> list[str]:
    width = max(len(str(name)) for name in content)
    return [f"  {str(name).ljust(width)}  {value(one)}" for name, one in content.items()]


def value(one: Any) -> str:
    if one is None:
        return "-"
    if isinstance(one, bool):
        return "yes" if one else "no"
    if isinstance(one, float):
        return f"{one:.6g}"
    return f"{one:,}" if isinstance(one, int) else str(one)


def size(n: int) -> str:
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= step:
            return f"{n / step:.1f} {unit}"
    return f"{n} bytes"
