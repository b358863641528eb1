"""The demo's report: one HTML file that loads nothing from elsewhere and prints well."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import tasksieve as ts


@dataclass
class Section:
    """One part of the report."""

    title: str
    asked: str
    answered: str
    facts: list[tuple[str, str]]
    figure: str
    caption: str
    table_title: str
    table: list[Sequence[str]]


STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1d2433; background: #fff;
       max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.3rem; margin: 3rem 0 .75rem; }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
.lead, figcaption, footer { color: #565e70; }
.plain { display: grid; grid-template-columns: 6.5rem 1fr; gap: .5rem 1rem;
         background: #f3f6fa; padding: 1rem 1.25rem; border-left: 4px solid #2563a8; }
.plain dt { font-weight: 600; } .plain dd { margin: 0; }
figure { margin: 1.5rem 0; } img { width: 100%; height: auto; } figcaption { font-size: .875rem; }
table { border-collapse: collapse; font-size: .925rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #dfe3ea; }
thead th { border-bottom: 2px solid #6b7385; } tbody th { font-weight: 400; }
.scroll { overflow-x: auto; } footer { margin-top: 3rem; font-size: .875rem; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } section { break-inside: avoid-page; } }
"""


def page(sections: Iterable[Section]) -> str:
    body = "\n".join(map(render, sections))
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tasksieve demo</title><style>{STYLE}</style></head>
<body>
<h1>tasksieve: what the demo found</h1>
<p class="lead">Sparse multi-task learning whose every answer carries a proof.</p>
{body}
<footer>Made by tasksieve {html.escape(ts.__version__)} with <code>make demo</code>. A duality gap bounds
how far a model's objective can be above the best possible one; it is computed from the data and needs no
trust in the solver.</footer>
</body>
</html>
"""


def render(section: Section) -> str:
    facts = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
        for name, value in section.facts
    )
    head, *rows = section.table
    header = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"""<section>
<h2>{html.escape(section.title)}</h2>
<dl class="plain"><dt>Asked</dt><dd>{html.escape(section.asked)}</dd>
<dt>Answered</dt><dd>{html.escape(section.answered)}</dd></dl>
<figure><img src="{section.figure}" alt="{html.escape(section.caption)}">
<figcaption>{html.escape(section.caption)}</figcaption></figure>
<h3>In numbers</h3>
<div class="scroll"><table><tbody>{facts}</tbody></table></div>
<h3>{html.escape(section.table_title)}</h3>
<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{cells}</tbody></table></div>
</section>"""
