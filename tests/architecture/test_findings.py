"""docs/findings.py: the table, the numbers in the page that is written by hand, and the pages of the studies."""

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from scipy.stats import binomtest

ROOT = Path(__file__).parents[2]
SAMPLE = ("aml_table_4", "ivra_table_6", "thesis_gradients_blocks")
"""Small studies, one of each kind that states claims."""
LARGE = ("rpi_tables_2_6",)


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return module


findings = loaded("findings")
recorded = sys.modules["recorded"]


def row(claim: str, run: str, verdict: str, difference: str = "0.25") -> dict[str, str]:
    known = dict.fromkeys(findings.COLUMNS, "")
    known |= {"study": "s", "claim": claim, "run": run, "verdict": verdict, "holm": "yes", "metric": "m"}
    known |= {"side": "below" if run == "two" else "above"}
    return known | {"difference": difference, "low": "0.1", "high": "0.4", "first_value": "0.75", "second_value": "0.5"}


ROWS = [
    row("a is better", "one", "holds"),
    row("a is better", "two", "fails", "-0.00012"),
    row("a is better", "three", "not judged"),
    row("b is better", "one", "undecided", "1.5"),
]


@pytest.mark.parametrize(
    ("mark", "number"),
    [
        ("holds s; a*", "1 of 2"),
        ("fails s", "1 of 3"),
        ("undecided s; *; one", "1 of 2"),
        ("left s", "1"),
        ("gap s; a*; one; m", "0.250 [0.100, 0.400]"),
        ("first s; a*; one", "0.750"),
        ("second s; a*; one", "0.500"),
        ("gaps s", "-0.0001 to 1.50"),
    ],
)
def test_a_mark_says_what_the_table_has(mark: str, number: str) -> None:
    page = f"Found in <!-- {mark} -->whatever was there<!-- / --> cells."
    assert findings.filled(page, ROWS) == f"Found in <!-- {mark} -->{number}<!-- / --> cells."


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("holds t", "no claim fits"),
        ("holds s; c*", "no claim fits"),
        ("gap s; a*", "3 claims where one is asked for"),
        ("gaps s; a*; three", "no claim is judged"),
        ("mean s", "'mean' in .* is none of holds"),
    ],
)
def test_a_mark_that_nothing_answers_is_an_error(mark: str, said: str) -> None:
    with pytest.raises(findings.StaleError, match=said):
        findings.filled(f"<!-- {mark} --><!-- / -->", ROWS)


def test_passes_are_those_of_the_records() -> None:
    found = []
    for file in (ROOT / "studies/auto/results").glob("a*/records.jsonl.gz"):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            own = [record for record in map(json.loads, lines) if record["row"] == "auto"]
        found += [record["evaluations"] + 2 * record["gradients"] for record in own]
    assert found, "one run begins with an a, and others do not"
    page = "<!-- passes auto; auto; a* -->?<!-- / -->"
    assert findings.filled(page, ROWS, {"passes": recorded.passes}) == page.replace(
        "?", f"{sum(found) / len(found):.0f}"
    )
    with pytest.raises(findings.StaleError, match="no run of auto fits"):
        recorded.passes(["auto", "auto", "nowhere*"])


def test_the_figure_is_turned_to_the_claims_side() -> None:
    page = "### 7. Better?\n<!-- gap s; a*; one --><!-- / -->\n### 8. Lower?\n<!-- gap s; a*; two --><!-- / -->"
    rows = [ROWS[0], {**ROWS[1], "difference": "-0.25", "low": "-0.4", "high": "-0.1", "verdict": "holds"}]
    first, second = (
        line.split("<circle")[1].partition(" cy")[0] for line in findings.figure(page, rows).split("</text><line")[-2:]
    )
    assert first == second
    assert "7. a is better (one)" in findings.figure(page, rows)
    assert "8. a is better (two)" in findings.figure(page, rows)


def test_the_figure_names_the_data_of_a_model_of_several() -> None:
    page = "### 7. Better?\n<!-- gap s; a*; one--texts --><!-- / -->\n<!-- gap s; b*; one--others --><!-- / -->"
    rows = [
        {**ROWS[0], "run": "one--texts", "claim": "a is better"},
        {**ROWS[0], "run": "one--others", "claim": f"b is {'very ' * 30}much better"},
    ]
    drawn = findings.figure(page, rows)
    assert "7. a is better (one, texts)" in drawn
    assert "… (one, others)" in drawn


def test_shares_are_those_of_the_records() -> None:
    folder = ROOT / "studies/cite_sources/results/answers_16--squad_5"
    metrics = json.loads((folder / "run.json").read_text())["metrics"]
    place = [info["label"] for info in metrics].index("precision_at_top")
    with gzip.open(folder / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = map(json.loads, lines)
        found = [one["scores"][place] for one in records if one["row"] == "context_cite(ablations=8)"]
    assert len(found) == 60
    low, high = binomtest(int(sum(found)), 60).proportion_ci(method="wilson")
    page = "<!-- share cite_sources; context_cite(ablations=8); answers_16--squad_5; precision_at_top -->?<!-- / -->"
    said = f"{sum(found):.0f} of 60 [{low:.2g}, {high:.2g}]"
    assert findings.filled(page, ROWS, {"share": recorded.share}) == page.replace("?", said)
    for asked in (page.replace("squad_5", "nowhere"), page.replace("precision_at_top", "log_probability_drop")):
        with pytest.raises(findings.StaleError):
            findings.filled(asked, ROWS, {"share": recorded.share})


def test_answers_of_unchanged_studies_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["cite_sources", "context_cite(ablations=8)", "answers_16--squad_5", "precision_at_top"]
    key = (asked[0], "share", "; ".join(asked[1:]))
    assert recorded.read_table()[key] == recorded.share(asked), "the table is stale: run python docs/findings.py"
    monkeypatch.setattr(recorded, "read_table", lambda: {key: "as it was"})
    for unchanged, answer in (([], recorded.share(asked)), (["cite_sources"], "as it was")):
        answers = recorded.Answers(unchanged)
        assert answers.of("share")(asked) == answer
        assert answers.given == {key: answer}
        assert answers.table().splitlines() == [
            "study,mark,asked,answer",
            ",".join([*key, f'"{answer}"' if "," in answer else answer]),
        ]


def test_cosines_are_those_of_the_agreement() -> None:
    rows = "kernel_shap(samples_per_unit=16) | mp_pi"
    path = ROOT / "studies/pi_figure_5/results/imdb--imdb/agreement.json.gz"
    pairs = json.loads(gzip.decompress(path.read_bytes()))["pairs"]
    [values] = [pair["cosine"] for pair in pairs if {pair["first"], pair["second"]} == set(rows.split(" | "))]
    known = [value for value in values if value is not None]
    said = recorded.cosine(["pi_figure_5", rows, "imdb--imdb"])
    assert said.startswith(f"{sum(known) / len(known):.3f} [")
    with pytest.raises(findings.StaleError, match="no agreement"):
        recorded.cosine(["pi_figure_5", "mp_pi | nothing", "imdb--imdb"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [("two*; score", "+0.5 [0.1, 0.9]"), ("one*; seconds", "9.5 to 10"), ("one, 9.5*; seconds", "9.5")],
)
def test_a_measured_number_is_that_of_the_table(
    asked: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["measured"], "RESULTS", tmp_path)
    lines = ["| case | seconds | score |", "| --- | --- | --- |", "| one | 9.5 | 1 |", "| one | 10 | 2 |"]
    (tmp_path / "times.md").write_text("\n".join([*lines, "| two | 3 | +0.5 [0.1, 0.9] |", "", "Measured here."]))
    page = "<!-- measured times; {} -->?<!-- / -->"
    found = findings.filled(page.format(asked), ROWS, {"measured": findings.measured})
    assert found == page.format(asked).replace("?", said)
    for wrong in ("three*; seconds", "one*; minutes"):
        with pytest.raises(findings.StaleError, match="times has no"):
            findings.filled(page.format(wrong), ROWS, {"measured": findings.measured})
    with pytest.raises(findings.StaleError, match="no benchmark"):
        findings.filled("<!-- measured other; one*; score --><!-- / -->", ROWS, {"measured": findings.measured})


def test_recorded_numbers_are_what_the_records_say() -> None:
    """All but those of the largest study, whose records take most of the time to read."""
    known = {key: answer for key, answer in recorded.read_table().items() if key[0] not in LARGE}
    assert {mark for _, mark, _ in known} == set(recorded.OF_RUNS)
    found = {(study, mark, asked): recorded.OF_RUNS[mark]([study, *asked.split("; ")]) for study, mark, asked in known}
    assert found == known


def test_numbers_of_auto_are_stale_when_they_or_what_they_are_made_of_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    evidence = loaded("evidence")
    known = json.loads(evidence.PLACE.read_text(encoding="utf-8"))
    monkeypatch.setattr(evidence, "PLACE", tmp_path / "evidence.json")
    assert not evidence.unchanged()
    other_digest = {**known, "digests": known["digests"] | {"evidence.py": "another"}}
    other_number = {**known, "few_passes": known["few_passes"] | {"units": 1}}
    for content, same in ((known, True), (other_digest, False), (other_number, False)):
        evidence.PLACE.write_text(json.dumps(content), encoding="utf-8")
        assert evidence.unchanged() is same


def test_the_tally_counts_judged_claims() -> None:
    said = findings.filled("<!-- tally --><!-- / -->", ROWS)
    assert "4 claims in 1 studies, of which 3 are judged: 1 hold (1 also after" in said
    assert "1 are not judged, 0 are too few, 0 are missing." in said


def test_changed_records_have_another_digest(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "records.jsonl").write_text("1\n")
    before = findings.digest(tmp_path)
    (tmp_path / "report/index.html").write_text("a page")
    assert findings.digest(tmp_path) == before
    (tmp_path / "records.jsonl").write_text("2\n")
    assert findings.digest(tmp_path) != before


def test_every_study_that_states_claims_has_its_verdicts() -> None:
    assert {path.parent.name for path in (ROOT / "studies").glob("*/results")} == set(findings.read_digests())
    assert set(SAMPLE) < {row["study"] for row in findings.read_table()}


@pytest.mark.parametrize("name", SAMPLE)
def test_the_table_is_what_the_records_say(name: str) -> None:
    """Digests of records do not change with a rule, so a small study of each kind is judged again."""
    assert findings.rows_of(name, findings.studies()[name]) == [r for r in findings.read_table() if r["study"] == name]
