"""What the pages of studies and audits share: what a study is, warnings, figures, its file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raison.jobs.folder import FILE
from raison.report.markup import NOTHING, Markup, html, joined, lines


def about(file: Mapping[str, Any], facts: Mapping[str, object], files: Markup = NOTHING) -> Markup:
    """What a study file says of itself, facts beside it, and links to its tables and to more `files`."""
    paragraphs = [" ".join(part.split()) for part in str(file.get("about", "")).split("\n\n")]
    of_file = {"Source": file.get("source"), "Reference": file.get("reference"), "Size": file.get("size")}
    return html(
        '<article class="raison">\n{}\n<dl>\n{}<dt>Tables</dt><dd><a href="tables.md">Markdown</a>, '
        '<a href="tables.tex">LaTeX</a></dd>\n{}</dl></article>',
        lines(html("<p>{}</p>", paragraph) for paragraph in paragraphs),
        definitions({**of_file, **facts}),
        files,
    )


def definitions(facts: Mapping[str, object]) -> Markup:
    """Names with their values; what is empty is left out."""
    return joined(html("<dt>{}</dt><dd>{}</dd>\n", name, value) for name, value in facts.items() if value)


def warnings_box(sentences: Sequence[str]) -> Markup:
    """What makes the numbers other than those of the whole study; nothing without sentences."""
    if not sentences:
        return NOTHING
    return html(
        '<article class="raison">\n<h2>Before you read the numbers</h2>\n<ul class="warnings">\n{}</ul></article>',
        joined(html("<li>{}</li>\n", sentence) for sentence in sentences),
    )


def figures(drawn: Iterable[Markup]) -> Markup:
    """Plots beside each other; nothing without any."""
    found = lines(html("<figure>{}</figure>", svg) for svg in drawn)
    return html('<div class="plots">\n{}</div>', found) if found else NOTHING


def study_file(text: str, digest: str) -> Markup:
    """The study file itself, folded."""
    return html(
        '<article class="raison">\n<details><summary>{}, digest {}</summary>\n<pre tabindex="0">{}</pre></details>'
        "</article>",
        FILE,
        digest,
        text,
    )
