"""``tasksieve site``: a site of a federated fit, its keys, its rules, and what leaves it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import write_atomically
from ..federated.certify import part_of
from ..federated.errors import FederatedError
from ..federated.folders import SiteFolder
from ..federated.keys import PublicKeys
from ..federated.plan import Plan
from ..federated.policy import Rules
from ..federated.site import LOG, Site
from ..federated.site_rows import SETTINGS
from ..report.words import count
from ..runs import RunError
from .exit_codes import OK, USER_ERROR, UsageError, say
from .options import Asked


def run_init(asked: Asked) -> int:
    settings = {key: value for key in SETTINGS if (value := getattr(asked, key, None)) not in (None, [])}
    table = Path(asked.table)
    if not table.is_file():
        raise UsageError(f"--table: there is no file {table}")
    settings["table"] = os.path.relpath(table, asked.site)
    if asked.categories is not None:
        settings["categories"] = [word.strip() for word in asked.categories.split(",")]
    named = ("min_sites", "min_rows", "min_held_out", "max_questions", "open")
    site = Site.create(asked.site, asked.name, settings, Rules(**{name: getattr(asked, name) for name in named}))
    if not asked.quiet:
        say(f"{asked.site}{os.sep} is the folder of {asked.name}; private.json in it never leaves this site")
        say(f"fingerprint of its keys: {site.keys.public().fingerprint()}")
        say("the line for [sites] of the plan:")
    print(f'{site.name} = "{site.public_line()}"')
    return OK


def run_show(asked: Asked) -> int:
    site = Site(asked.site)
    public = site.keys.public(site.data_digest)
    print(f"site {site.name}, keys {public.fingerprint()}")
    print("data: " + ", ".join(f"{key} {value}" for key, value in site.settings.items()))
    print("rules: " + ", ".join(f"{rule} {_value(value)}" for rule, value in site.rules.listed().items()))
    print(f"line for the plan:\n{site.name} = \"{public.line()}\"")
    if site.plan is None:
        print("no plan was agreed to")
        return OK
    print("\n".join(["", "the plan that was agreed to:", *site.plan.in_words()]))
    answered = count(len(site.answered()), "question")
    print(f"\n{answered} answered; the messages are in {site.folder / LOG}{os.sep}")
    return OK


def _value(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:g}"


def run_agree(asked: Asked) -> int:
    site, plan = Site(asked.site), Plan.read(asked.plan)
    print("\n".join(plan.in_words()))
    coordinator = PublicKeys.from_line(plan.coordinator).fingerprint() if plan.coordinator else "none"
    print(f"keys of the coordinator: {coordinator}")
    for name in plan.names:
        print(f"keys of {name}: {PublicKeys.from_line(plan.sites[name]).fingerprint()}")
    rows = site.check(plan)
    for note in rows.notes:
        say(f"note: {note}")
    if asked.check:
        print("nothing stands against it; nothing was agreed to")
        return OK
    site.agree(plan)
    print(f"{site.name} has agreed; it answers the questions of this plan from now on")
    return OK


def run_review(asked: Asked) -> int:
    site = Site(asked.site)
    site.agreed()
    waiting, refused = SiteFolder(_folder(asked.exchange), site.name).waiting(), 0
    for question in waiting:
        try:
            lines = [*site.review(question.read_bytes()), "no rule refuses it"]
        except FederatedError as error:
            refused += 1
            lines = [*getattr(error, "lines", []), f"refused by the rule {error}"]
        print("\n  ".join([question.name, *lines]))
    print(f"{count(len(waiting), 'question file')} waiting" + (f", {refused} of them refused" if refused else ""))
    return USER_ERROR if refused else OK


def _folder(path: str) -> str:
    if not os.path.isdir(path):
        raise UsageError(f"there is no folder {path}")
    return path


def run_answer(asked: Asked) -> int:
    site = Site(asked.site)
    reply, exchange = site.node().reply, SiteFolder(_folder(asked.exchange), site.name)
    if asked.watch:
        if not asked.quiet:
            say(f"answering what arrives in {asked.exchange}; Ctrl-C ends it")
        try:
            exchange.serve(reply)
        except KeyboardInterrupt:
            return OK
    written = exchange.answer(reply, exchange.unanswered())  # what was refused may be allowed by now
    if not asked.quiet:
        for name in written:
            print(os.path.join(asked.exchange, name))
        if not written:
            say("no question waits")
    return USER_ERROR if any(name.startswith("refusal") for name in written) else OK


def run_part(asked: Asked) -> int:
    for file in filter(None, (asked.out, asked.rows)):
        if Path(file).exists() and not asked.overwrite:
            raise RunError(f"{file} exists: --overwrite replaces it")
    site = Site(asked.site)
    part_of(site).save(asked.out)
    if asked.rows is not None:
        read = {name: getattr(site.rows, name) for name in ("X", "y", "task", "sample_weight", "offset")}
        given = {name: np.asarray(array) for name, array in read.items() if array is not None}
        write_atomically(Path(asked.rows), lambda file: np.savez(file, **given))  # type: ignore[arg-type]
    if not asked.quiet:
        say(f"{asked.out} holds coefficients and residuals of this site: it stays here")
        say(f"check it: tasksieve verify {asked.out} --data {asked.rows or 'ROWS.npz (--rows writes them)'}")
    return OK


def run_serve(asked: Asked) -> int:
    from ..federated.certificates import write_certificate
    from ..federated.https import HttpsSite

    site = Site(asked.site)
    if asked.new_certificate:
        for file in write_certificate(site.folder, site.name, asked.new_certificate):
            print(file)
        return OK
    for flag, value in (("--certificate", asked.certificate), ("--private-key", asked.private_key),
                        ("--trusted", asked.trusted)):  # fmt: skip
        if not value:
            raise UsageError(f"{flag}: is needed; --new-certificate HOST makes a certificate and its key")
    server = HttpsSite(
        site.node().reply, certificate=asked.certificate, key=asked.private_key, trusted=asked.trusted,
        coordinator=asked.coordinator, host=asked.host, port=asked.port,
    )  # fmt: skip
    if not asked.quiet:
        say(f"{site.name} answers at port {server.address[1]}; Ctrl-C ends it")
    try:
        server.serve()
    except KeyboardInterrupt:
        server.close()
    return OK
