"""The content of the pages of texts: the explanations of a run, text by text, with their records."""

from dataclasses import dataclass

from raison.core.results.explanation import Explanation
from raison.core.settings.reading import Fields
from raison.jobs.store import RecordStore
from raison.runs.record_validation import check_key
from raison.runs.run import Record, Run


@dataclass(frozen=True, slots=True)
class Shown:
    """One row's explanation of a text with its record."""

    record: Record
    explanation: Explanation


def shown_texts(run: Run) -> dict[int, list[Shown]]:
    """Every text that has explanations, in order, with its rows in the table's order; none from records only.

    For rows with several seeds, the first seed is shown.
    """
    if run.folder is None:
        return {}
    rows = {row.label: (place, row.seeds[0]) for place, row in enumerate(run.header.rows)}
    by_text: dict[int, dict[int, Shown]] = {}
    store = RecordStore(run.folder / "explanations.jsonl")
    for line in store.lines():
        values = line.parsed()
        if values is None:
            continue
        with store.telling(line):
            fields = Fields(values, "an explanation's line")
            check_key(fields, run.header.texts)
            fields.mapping("explanation")
            place, seed = rows.get(values["row"], (0, None))
            record = run.records.get((values["row"], values["seed"], values["text"]))
            if values["seed"] == seed and record is not None:
                shown = Shown(record, Explanation.from_dict(values["explanation"]))
                by_text.setdefault(values["text"], {})[place] = shown
    return {text: [by_text[text][place] for place in sorted(by_text[text])] for text in sorted(by_text)}
