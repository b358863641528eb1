"""Draws of a simulation in parts: each process does its share and stores a line of JSON a draw; tables need only lines.

    for i in 1 2 3 4; do python benchmarks/transfer.py --threads 1 --part $i/4 --store part$i.jsonl & done; wait
    python benchmarks/transfer.py --from part*.jsonl

A part that is stopped keeps what it has stored, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _common import Report, _plain, say

ABOUT = ("command", "date", "cores", "versions")  # of the run, with every line


def add_arguments(parser: argparse.ArgumentParser, draws: int, words: str) -> None:
    """`--draws`, and the three that go with parts."""
    parser.add_argument("--draws", type=int, default=draws, help=words)
    parser.add_argument(
        "--part", type=_part, default=(1, 1), metavar="I/N", help="the I-th of N shares of the draws"
    )
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="add a line of JSON a draw to this file; no tables"
    )
    parser.add_argument(
        "--from", dest="stored", type=Path, nargs="+", metavar="FILE", help="no run: tables of lines"
    )


def draws(
    report: Report, args: argparse.Namespace, one: Callable[[int], dict[str, Any]]
) -> list[dict[str, Any]] | None:
    """What `one` found in every draw, by design; None where the lines are stored, not put into tables. Ctrl-C ends it
    with the draws that are finished."""
    if args.stored:
        return _stored(report, args.stored)
    i, parts = args.part
    own = range(2 if args.quick else args.draws)[i - 1 :: parts]
    if args.store is None and parts > 1:
        raise SystemExit("--part needs --store: tables are made of all parts, with --from")
    done = {line["draw"] for line in _lines(args.store)} if args.store and args.store.exists() else set()
    found = []
    try:
        for k in own:
            if k in done:
                continue
            start = time.process_time()
            found.append(one(k))
            line = {"draw": k, "found": found[-1], "seconds": time.process_time() - start}
            say(f"draw {k + 1}: {line['seconds']:.1f} processor seconds")
            if args.store is None:
                report.raw(**line)
            else:
                about = {key: report.content[key] for key in ABOUT} | {"command": _whole(report, args)}
                with args.store.open("a") as file:
                    file.write(json.dumps(line | about, default=_plain) + "\n")
    except KeyboardInterrupt:
        say("stopped")
    return found if args.store is None else None


def _part(text: str) -> tuple[int, int]:
    i, n = (int(word) for word in text.split("/"))
    if not 1 <= i <= n:
        raise argparse.ArgumentTypeError("I/N, with I from 1 to N")
    return i, n


def _whole(report: Report, args: argparse.Namespace) -> str:
    """The command whose parts were run."""
    words, (_, parts) = report.content["command"].split(" "), args.part
    for option in ("--part", "--store"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    return " ".join(words) + f" in {parts} parts" * (parts > 1)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _stored(report: Report, files: list[Path]) -> list[dict[str, Any]]:
    """What lines of one version say, in the order of draws; the report says when and with what they were made."""
    lines = sorted((line for file in files for line in _lines(file)), key=lambda line: line["draw"])
    if not lines:
        raise SystemExit("no draws are stored")
    if len({json.dumps(line["versions"]) for line in lines}) > 1:
        raise SystemExit("draws of different versions do not belong in one table")
    report.content |= {key: lines[-1][key] for key in ABOUT}
    found: dict[int, dict[str, Any]] = {}
    for line in lines:
        known = found.setdefault(line["draw"], {})
        if not known.keys().isdisjoint(line["found"]):
            raise SystemExit(f"draw {line['draw']} of a design is there twice")
        known |= line["found"]
        report.content["raw"].append({key: line[key] for key in ("draw", "found", "seconds")})
    say(f"{len(found)} draws, {sum(line['seconds'] for line in lines):.0f} processor seconds")
    return list(found.values())
