"""``tasksieve federate``: the coordinator of a federated fit."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import report
from ..federated.errors import SiteSilent
from ..federated.estimate import in_words
from ..federated.fitted import FederatedFit
from ..federated.fitting import RoundProgress, fit, unsolved
from ..federated.folders import Folders
from ..federated.keys import PrivateKeys
from ..federated.plan import Plan
from ..federated.plan_words import named
from ..report.page import need_jinja
from ..report.words import count
from ..tables import write_table
from .exit_codes import NOT_CONVERGED, OK, SITES_SILENT, UsageError, say
from .options import Asked

RESULT = "result.npz"
STATEMENT = "statement.npz"
REPORT = "report.html"
#: the name in the certificate of a coordinator that makes its own
COORDINATOR = "coordinator"


def run_federate(asked: Asked) -> int:
    if asked.new_keys:
        return make_keys(asked)
    if asked.new_certificate:
        return make_certificate(asked)
    if asked.plan is None:
        raise UsageError("name the plan, a .toml file")
    plan = Plan.read(asked.plan)
    if not asked.quiet:
        print("\n".join([*plan.in_words(), in_words(plan)]), flush=True)
    if asked.check:
        return OK
    if asked.out is None:
        raise UsageError("--out: name a folder for exchanges and results")
    if asked.report:
        need_jinja()
    if not Path(asked.keys).is_file():
        raise UsageError(f"--keys: there is no file {asked.keys}; --new-keys makes one")
    transport = make_transport(plan, asked)
    folder = Path(asked.out)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is said below
            progress = None if asked.quiet else tell
            found = fit(plan, transport, asked.keys, folder=folder / "exchanges", progress=progress)
    except SiteSilent as silent:
        say(f"tasksieve: no answer yet from {', '.join(silent.names)}; the same command goes on from here")
        return SITES_SILENT
    write_results(found, folder)
    if asked.report:
        report.write_report(found, folder / REPORT, plan=plan)
    if not asked.quiet:
        print("\n".join(summary(found, plan, folder)), flush=True)
    return OK if found.converged.all() else NOT_CONVERGED


def make_keys(asked: Asked) -> int:
    """A new file of keys."""
    if Path(asked.keys).exists():
        raise UsageError(f"--new-keys: {asked.keys} exists; it is never replaced")
    keys = PrivateKeys.create()
    keys.write(asked.keys)
    if not asked.quiet:
        say(f"{asked.keys} never leaves this computer; fingerprint of its keys: {keys.public().fingerprint()}")
        say("the line for the top of the plan:")
    print(f'coordinator = "{keys.public().line()}"')
    return OK


def make_certificate(asked: Asked) -> int:
    """A certificate of the coordinator, for sites to trust."""
    from ..federated.certificates import write_certificate

    folder = Path(asked.keys).parent
    if (folder / f"{COORDINATOR}.certificate.pem").exists():
        raise UsageError(f"--new-certificate: there is one in {folder}; it is never replaced")
    for file in write_certificate(folder, COORDINATOR):
        print(file)
    return OK


def make_transport(plan: Plan, asked: Asked) -> Any:
    """The way to the sites that was asked for."""
    if (asked.folders is None) == (not asked.addresses):
        raise UsageError("--folders or --addresses: one of them says how sites are reached")
    if asked.folders is not None:
        return Folders({name: Path(asked.folders) / name for name in plan.names}, patience=asked.patience)
    from ..federated.https import HttpsSites

    given = dict(word.partition("=")[::2] for word in asked.addresses)
    if set(given) != set(plan.sites):
        raise UsageError(f"--addresses: NAME=https://host:port for each of {', '.join(plan.names)}")
    for flag, value in (("--certificate", asked.certificate), ("--private-key", asked.private_key),
                        ("--trusted", asked.trusted)):  # fmt: skip
        if not value:
            raise UsageError(f"{flag}: is needed with --addresses")
    return HttpsSites(
        given, certificate=asked.certificate, key=asked.private_key, trusted=asked.trusted, patience=asked.patience
    )


def tell(progress: RoundProgress) -> None:
    """A line after each round."""
    say(
        f"round {progress.rounds}: {progress.solved} of {progress.values} values solved, largest gap "
        f"{progress.worst_gap:.1e}; {progress.bytes_up:,} bytes from each site"
    )


def write_results(found: FederatedFit, folder: Path) -> None:
    """result.npz, which sites need for their models, and tables."""
    found.save(folder / RESULT)
    if found.statement is not None:
        found.statement.save(folder / STATEMENT)
    for site, half in found.halves.items():
        half.save(folder / f"half-{site}.npz")
    values = {"alpha": found.alphas, "objective": found.objectives, "dual_gap": found.dual_gaps}
    values |= {"n_selected": found.n_selected, "converged": found.converged}
    if found.held_out is not None:
        values |= {"held_out_loss": found.held_out.scores.mean(axis=1), "explained": found.explained}
    write_table(folder / "path.csv", values)
    k = found.chosen
    order = np.argsort(-found.row_norms(k), kind="stable")
    names = [found.columns[j] for j in found.features(k)[order].tolist()]
    write_table(folder / "features.csv", {"feature": names, "row_norm": found.row_norms(k)[order]})
    if found.selection_probabilities is not None:
        often = np.argsort(-found.selection_probabilities, kind="stable")
        often = often[found.selection_probabilities[often] > 0.0]
        columns = {"feature": [found.columns[j] for j in often.tolist()]}
        write_table(folder / "stability.csv", {**columns, "probability": found.selection_probabilities[often]})


def summary(found: FederatedFit, plan: Plan, folder: Path) -> list[str]:
    """A few lines for stdout."""
    k = found.chosen
    strongest = found.features(k)[np.argsort(-found.row_norms(k), kind="stable")]
    how = "the last value" if found.held_out is None else "chosen by cross-validation"
    traffic = f"{found.bytes_up:,} bytes from each site, {found.bytes_down:,} to it"
    lines = [
        f"{count(len(found.sites), 'site')}, {count(len(found.tasks), 'task')}, {count(found.n_features, 'column')}: "
        f"{count(len(found), 'value')} of alpha in {count(found.rounds, 'round')}; {traffic}",
        f"alpha = {found.alphas[k]:.6g} ({how}): {count(int(found.n_selected[k]), 'feature')} selected",
        *([f"strongest: {named([found.columns[j] for j in strongest.tolist()])}"] if len(strongest) else []),
    ]
    if found.held_out is not None:
        less = f"{100.0 * found.explained[k]:.1f} % less than without features"
        loss = f"loss of rows held out: {found.held_out.scores[k].mean():.4g}, {less}"
        lines.append(f"{loss} (optimistic: alpha was chosen by these rows)")
    lines.append(
        f"objective {found.objectives[k]:.6g}, at most {found.dual_gaps[k]:.1e} above the optimum of all sites' rows"
    )
    if found.statement is not None:
        gap = float(found.statement.arrays["gap"][0])
        lines.append(f"signed by all sites, with all rounding: at most {gap:.1e} above it ({folder / STATEMENT})")
    else:
        lines.append(f"NO CERTIFICATE: no site has signed its sums, so that there is no {STATEMENT} to check")
    if not found.converged.all():
        n_open = int(np.count_nonzero(~found.converged))
        lines.append(f"NOT CONVERGED: {count(n_open, 'value')} {unsolved(plan)}")
    return [*lines, f"everything is in {folder}{os.sep}; sites make their models from {folder / RESULT}"]
