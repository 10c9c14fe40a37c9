"""What notebooks show of a result: a heading, lines and a table, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup


def card(
    title: str, lines: Iterable[str] = (), head: Sequence[str] = (), rows: Iterable[Sequence[str]] = ()
) -> str:
    """HTML for `_repr_html_`."""
    parts = [Markup("<p><b>{}</b></p>").format(title)]
    parts += [Markup("<p>{}</p>").format(line) for line in lines]
    body = Markup("").join(_row("td", row) for row in rows)
    if body:
        table = Markup("<table><thead>{}</thead><tbody>{}</tbody></table>")
        parts.append(table.format(_row("th", head), body))
    return str(Markup('<div class="cuasmrl">{}</div>').format(Markup("").join(parts)))


def _row(tag: str, cells: Sequence[str]) -> Markup:
    """Figures to the right, words to the left."""
    cell = Markup(f'<{tag} style="text-align:{{}}">{{}}</{tag}>')
    made = (cell.format("right" if said[:1] in "+-0123456789" and said else "left", said) for said in cells)
    return Markup("<tr>{}</tr>").format(Markup("").join(made))
