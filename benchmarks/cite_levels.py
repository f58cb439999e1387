"""Sources first, sentences later: the passes of hierarchical_occlusion beside those of occlusion, at 20 sources.

Questions of SQuAD about articles that the model was not trained on, each with its passage among 19 others of the same
article. Passages are runs of three sentences; to bound the prompts, only the shortest run of a paragraph is used, and
the 24 paragraphs of an article with the shortest ones. `occlusion` leaves out every sentence, and its first source is
that of the strongest sentence. Removed sentences are replaced as `compare` does it by default. Both methods read the
same numbers of the same sentences, so that they differ only where the sentence lies in a source that was not opened.
Passes are counted, and nothing is timed; the model runs in bfloat16.

Every question is kept in results/cite_levels.jsonl as soon as it is known, and a run that was stopped goes on.
"""

import json

from common import RESULTS, recorded, save
from passages import short_questions

import raison
from raison.core.results.explanation import Explanation
from raison.data.sourced.question import KnownSources
from raison.explaining.answers import answers_of
from raison.explaining.attribution import run
from raison.explaining.batch import prepare_stated
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.writing.generator import Generator
from raison.numerics.statistics.successes import share_interval
from raison.training.recipes.answers import exact

MODEL, DTYPE = "demo/smollm2-answers", "bfloat16"
OTHERS, SENTENCES, PARAGRAPHS = 19, 3, 24
WANTED = {True: 20, False: 10}
"""Questions that the model answers right, and wrong."""
RECORDS = RESULTS / "cite_levels.jsonl"


def measured(writer: Generator, known: KnownSources) -> dict[str, object]:
    """What both methods say of the known answer, and their passes."""
    answers = answers_of(writer, [known.to_dict()])
    batch = prepare_stated(answers.of(writer), answers.texts, Settings("sentence", of="log_probability"))
    flat, levels = (run(batch, CATALOGUE.create(name))[0] for name in ("occlusion", "hierarchical_occlusion"))
    sentence = strongest(flat)
    source = flat.units[sentence].name
    return {
        "tokens": len(answers.answers[0].source.prompt.ids),
        "sentences": len(flat.units),
        "flat passes": flat.evaluations,
        "passes": levels.evaluations,
        "same source": first_source(levels) == source,
        "same sentence": strongest(levels) == sentence,
        "flat finds it": source in known.gold,
        "finds it": first_source(levels) in known.gold,
    }


def strongest(explanation: Explanation) -> int:
    return max(range(len(explanation.scores)), key=explanation.scores.__getitem__)


def first_source(explanation: Explanation) -> str:
    """The source whose removal as a whole lowers the log-probability most."""
    drops: list[float] = explanation.notes["groups"]
    names = list(dict.fromkeys(unit.name for unit in explanation.units))
    return names[max(range(len(drops)), key=drops.__getitem__)]


def measure_questions() -> None:
    """Go through the questions, those first that are answered right; stop when there are enough of both kinds."""
    writer = raison.load(MODEL, dtype=DTYPE)
    assert isinstance(writer, Generator)
    for right in WANTED:
        for number, known in enumerate(short_questions(OTHERS, SENTENCES, PARAGRAPHS)):
            found = recorded(RECORDS)
            if sum(record["right"] is right and "passes" in record for record in found.values()) >= WANTED[right]:
                break
            record = dict(found.get(number, {"question": number}))
            if "right" not in record:
                record["right"] = exact(writer, known)
            if record["right"] is right and "passes" not in record:
                record |= measured(writer, known)
            if record != found.get(number):
                with RECORDS.open("a") as lines:
                    lines.write(json.dumps(record) + "\n")


def row(right: bool) -> dict[str, object]:
    """Means over the questions of a kind, and shares with their 95 % intervals."""
    found = [record for record in recorded(RECORDS).values() if record["right"] is right and "passes" in record]

    def mean(what: str) -> float:
        return sum(float(str(record[what])) for record in found) / len(found)

    def share(what: str) -> str:
        count = sum(bool(record[what]) for record in found)
        low, high = share_interval(count, len(found))
        return f"{count / len(found):.2f} ({low:.2f} to {high:.2f})"

    return {
        "answered": "right" if right else "wrong",
        "questions": len(found),
        "prompt's tokens": round(mean("tokens")),
        "sentences": round(mean("sentences"), 1),
        "passes of occlusion": round(mean("flat passes"), 1),
        "passes of hierarchical_occlusion": round(mean("passes"), 1),
        "share of passes": mean("passes") / mean("flat passes"),
        **{what: share(what) for what in ("same source", "same sentence", "flat finds it", "finds it")},
    }


def main() -> None:
    measure_questions()
    save("cite_levels", [row(right) for right in WANTED])


if __name__ == "__main__":
    main()
