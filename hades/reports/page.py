"""The frame all pages share: one HTML file with its styles inside, nothing fetched, nothing run."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

_STYLE = """
:root{color-scheme:light dark;--paper:#fbfbf9;--card:#fff;--ink:#1d2430;--soft:#5c6675;--line:#e2e4e8;--grid:#eceef1;
--mark:#2f6f9f;--mark2:#c8792b;--good:#23794a;--bad:#b3261e;--goodback:#e5f3ea;--badback:#fbe9e7;--noteback:#fdf4e3}
@media(prefers-color-scheme:dark){:root{--paper:#14171c;--card:#1b2027;--ink:#e6e9ee;--soft:#9aa4b2;--line:#2d343e;
--grid:#262c35;--mark:#6fb1de;--mark2:#e6a765;--good:#6fcf97;--bad:#ff8a80;--goodback:#173325;--badback:#3d1d1b;
--noteback:#33291a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:17px;margin:0 0 4px}
h3{font-size:14px;margin:0 0 2px;font-weight:600}
p{margin:0 0 10px}
.lead,.soft{color:var(--soft)}
.lead{margin-bottom:24px}
code,.key{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px 22px;margin:0 0 18px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0 0 18px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px}
.tile b{display:block;white-space:nowrap;font-size:22px;line-height:1.2;font-weight:650;
font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
.tile.good b{color:var(--good)}.tile.bad b{color:var(--bad)}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:18px}.two section{margin:0}
.two{margin:0 0 18px}.count{font-weight:400}
.small{display:grid;grid-template-columns:repeat(auto-fit,minmax(230px,1fr));gap:14px 22px;margin-top:10px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}
th{text-align:left;font-size:12px;font-weight:600;color:var(--soft);border-bottom:1px solid var(--line);padding:4px 12px
6px 0;white-space:nowrap}
td{border-bottom:1px solid var(--grid);padding:6px 12px 6px 0;vertical-align:top}
tr:last-child td{border-bottom:0}
th.n,td.n{text-align:right}
.badge{display:inline-block;border-radius:99px;padding:1px 10px;font-size:12px;font-weight:600}
.badge.idle{color:var(--soft);background:var(--grid)}
.badge.good{color:var(--good);background:var(--goodback)}.badge.bad{color:var(--bad);background:var(--badback)}
.note{background:var(--noteback);border-radius:8px;padding:8px 12px;margin:8px 0 0}
.broken{border-left:4px solid var(--bad);padding:2px 0 2px 16px;margin:16px 0 0}
details{margin-top:10px}summary{cursor:pointer;color:var(--soft)}
.up{color:var(--good)}.down{color:var(--bad)}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{fill:var(--ink);font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
svg .soft{fill:var(--soft)}svg .num{font-variant-numeric:tabular-nums}
svg .mark{fill:var(--mark)}svg .mark2{fill:var(--mark2)}
svg .before{fill:none;stroke:var(--mark2);stroke-width:1.5}svg .axis{stroke:var(--line);stroke-width:1}
svg .grid{stroke:var(--grid);stroke-width:1}svg .track{fill:var(--grid)}
svg .band{fill:var(--mark);fill-opacity:.28}svg .band:hover{fill-opacity:.6}
footer{color:var(--soft);font-size:13px;margin-top:28px}
@media print{body{background:#fff}section,.tile{break-inside:avoid}}
"""


def write(path: Path, title: str, lead: str, body: Iterable[str], footer: str) -> Path:
    """Put a page on the disk in one step, so that nobody reads half of it; `lead`, `body` and `footer` are HTML."""
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f'<body><main><h1>{escape(title)}</h1><p class="lead">{lead}</p>\n'
        + "\n".join(body)
        + f"\n<footer>{footer}</footer></main></body></html>\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, "utf-8", errors="replace")  # a lone surrogate of hostile input must not stop a report
    partial.replace(path)
    return path


def escape(text: object) -> str:
    """Text as HTML shows it, in content and in attributes."""
    return html.escape(str(text), quote=True)


def section(title: str, about: str, *content: str) -> str:
    """A card with a heading and one sentence on what it shows."""
    said = f'<p class="soft">{escape(about)}</p>' if about else ""
    return f"<section><h2>{escape(title)}</h2>{said}{''.join(content)}</section>"


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Large numbers with what they count; the third says `good`, `bad` or nothing."""
    shown = "".join(
        f'<div class="tile {tone}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for value, name, tone in facts
    )
    return f'<div class="tiles">{shown}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; `numeric` columns stand right."""
    place = dict.fromkeys(numeric, ' class="n"')
    head = "".join(f"<th{place.get(number, '')}>{escape(name)}</th>" for number, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{place.get(number, '')}>{cell}</td>" for number, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def badge(text: str, tone: str) -> str:
    """A word in a pill, coloured `good`, `bad` or `idle`."""
    return f'<span class="badge {tone}">{escape(text)}</span>'


def prose(text: str) -> str:
    """A sentence as HTML, with what stands between backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def number(value: float) -> str:
    """A count with separators."""
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """A duration a person reads."""
    if value >= 90:
        return f"{int(value // 60)}m {int(value % 60):02d}s"
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"
