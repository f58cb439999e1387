"""Curves, areas, claims and the page of a study of trust, from synthetic records: true to the numbers, safe."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Group

from raison.core.errors import DataError
from raison.report.pages.writing import shown
from raison.report.style import terminal_text
from raison.runs.judging import Verdict
from raison.studies.claims import verdicts
from raison.studies.kinds.trust.results import TrustRuns
from raison.studies.kinds.trust.results import read as read_trust
from raison.studies.kinds.trust.sections import area_tables, attack_tables, left_out, sections
from raison.studies.reports import write
from raison.trust.records import Attacked, BlockSimilarity
from raison.trust.results import ATTACKS, SIMILARITIES, AttackVariant, store_of
from raison.trust.tables import areas, at_blocks, curve, effects, held

METHODS = ("saliency", "attention_rollout", "<ignores & all>")
MODELS = {"small": (2, 1_200_000), "middle": (4, 5_000_000), "large": (12, 22_000_000)}
TEXTS, ATTACKED, DRAWS = 10, 9, 2
STEADY = "<ignores & all>"
FILE = 'schema = 1\nkind = "trust"\ntitle = "Trust <me>"\nabout = "Synthetic & small."\n'
CLAIMS = [
    {"says": "gone at once", "measure": "spearman", "order": "cascading", "blocks": 1, "below": "saliency",
     "than": 0.3},
    {"says": "never moves", "measure": "spearman", "order": "cascading", "blocks": "all", "above": STEADY, "than": 0.5,
     "run": "large--sst"},
    {"says": "gradients depend more", "measure": "spearman_area", "order": "cascading", "below": "saliency",
     "than": "attention_rollout", "run": "large--sst"},
    {"says": "backwards", "measure": "spearman_area", "order": "independent", "above": "saliency",
     "than": "attention_rollout", "run": "large--sst"},
    {"says": "beats noise", "measure": "rank_change", "attack": "embedding", "objective": "constrained",
     "above": "saliency", "than_attack": "noise", "run": "small--sst"},
    {"says": "nearly as effective", "measure": "rank_change", "attack": "embedding", "objective": "constrained",
     "above": "saliency", "than_objective": "unconstrained", "by": -0.3, "run": "small--sst"},
    {"says": "as effective", "measure": "rank_change", "attack": "embedding", "objective": "constrained",
     "above": "saliency", "than_objective": "unconstrained", "run": "small--sst"},
    {"says": "not attacked", "measure": "rank_change", "attack": "embedding", "objective": "constrained",
     "above": "attention_rollout", "than": 0.1, "run": "small--sst"},
]  # fmt: skip
CHANGES = {"embedding": {"unconstrained": 0.8, "constrained": 0.7}, "noise": {"unconstrained": 0.2, "constrained": 0.1}}


def header(axis: str = "model", data: tuple[str, ...] = ("sst",)) -> dict[str, Any]:
    variants = [
        {"attack": attack, "objective": objective, "methods": ["saliency", STEADY]}
        for attack, objectives in CHANGES.items()
        for objective in objectives
    ]
    runs = [
        {
            "name": f"{model}--{name}", "model": model, "data": name, "source": f"invented {name}",
            "randomisation": {
                "orders": ["cascading", "independent"], "draws": DRAWS, "texts": TEXTS, "blocks": MODELS[model][0],
                "methods": list(METHODS), "left_out": {"random": "it asks the <model> for nothing"},
            },
            "attacks": {
                "texts": ATTACKED, "boundary": [2], "variants": variants,
                "left_out": {"embedding": {"attention_rollout": "it is not differentiable"}},
            },
        }
        for name in data
        for model in MODELS
    ]  # fmt: skip
    return {
        "schema": 1, "kind": "trust", "name": "synthetic", "digest": "abc", "limit": None, "claims": CLAIMS,
        "methods": ["random", *METHODS], "versions": {"raison": "0"}, "runs": runs,
        "models": {k: {"name": f"{k}/model", "blocks": of, "parameters": size} for k, (of, size) in MODELS.items()},
    }  # fmt: skip


def similarity(method: str, order: str, blocks: int, of: int, draw: int, text: int) -> BlockSimilarity:
    share = blocks / of if order == "cascading" else 0.5
    noise = 0.04 * math.sin(7 * text + 3 * blocks + draw)
    value = {"saliency": 0.05, "attention_rollout": 1 - 0.6 * share**2, STEADY: 1.0}[method] + noise * (
        method != STEADY
    )
    kendall = math.nan if text == 0 and method == "saliency" else value * 0.8
    return BlockSimilarity(method, order, blocks, of, draw, text, value, kendall, max(value, 0.2))  # type: ignore[arg-type]


def fill(folder: Path, axis: str = "model", data: tuple[str, ...] = ("sst",)) -> TrustRuns:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(FILE + f'[figure]\nx = "{axis}"\n')
    (folder / "trust.json").write_text(json.dumps(header(axis, data)))
    rng = np.random.default_rng(0)
    for run in header(axis, data)["runs"]:
        of = MODELS[run["model"]][0]
        store_of(folder, run["name"], SIMILARITIES).append(
            similarity(method, order, blocks, of, draw, text).to_dict()
            for method in METHODS
            for order in ("cascading", "independent")
            for blocks in range(1, of + 1)
            for draw in range(DRAWS)
            for text in range(TEXTS)
        )
        store_of(folder, run["name"], ATTACKS).append(
            Attacked(
                method, attack, objective, text, 2,
                change * (method == "saliency") + 0.02 * rng.random(), 0.001 * change,
                0.3 * change * (objective == "unconstrained"), 500, text != 3,
            ).to_dict()  # type: ignore[arg-type]
            for method in ("saliency", STEADY)
            for attack, objectives in CHANGES.items()
            for objective, change in objectives.items()
            for text in range(ATTACKED)
            if text != 2
        )  # fmt: skip
    return read_trust(folder)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TrustRuns:
    return fill(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def stated(study: TrustRuns) -> list[Verdict]:
    return list(verdicts(study))


def test_a_finished_study_is_read_back_whole(study: TrustRuns) -> None:
    run = study.runs["middle--sst"]
    assert (run.missing, run.dropped, run.blocks) == (0, 0, 4)
    assert run.wanted == len(METHODS) * 2 * 4 * DRAWS * TEXTS + 2 * 4 * (ATTACKED - 1)
    key = ("saliency", "independent", 3, 1, 0)
    assert math.isnan(run.similarities[key].kendall)
    assert run.similarities[key].spearman == similarity("saliency", "independent", 3, 4, 1, 0).spearman


def test_draws_are_averaged_before_texts(study: TrustRuns) -> None:
    run = study.runs["middle--sst"]
    found = at_blocks(run, "attention_rollout", "cascading", 3, "spearman")
    by_hand = [
        sum(similarity("attention_rollout", "cascading", 3, 4, draw, 6).spearman for draw in range(DRAWS)) / DRAWS
    ]
    assert found[6] == pytest.approx(by_hand[0])
    point = curve(run, "attention_rollout", "cascading", "spearman")[2]
    assert point.count == TEXTS
    assert point.mean == pytest.approx(sum(found.values()) / TEXTS)
    assert point.low < point.mean < point.high


def test_areas_are_trapezoids_from_the_unchanged_model_on_and_means_of_single_blocks(study: TrustRuns) -> None:
    run = study.runs["middle--sst"]
    points = [at_blocks(run, "attention_rollout", "cascading", blocks, "spearman")[4] for blocks in range(1, 5)]
    by_hand = np.trapezoid([1.0, *points], dx=0.25)
    assert areas(run, "attention_rollout", "cascading", "spearman")[4] == pytest.approx(by_hand)
    single = [at_blocks(run, "attention_rollout", "independent", blocks, "spearman")[4] for blocks in range(1, 5)]
    assert areas(run, "attention_rollout", "independent", "spearman")[4] == pytest.approx(np.mean(single))
    assert set(areas(run, STEADY, "cascading", "spearman").values()) == {1.0}


def test_texts_without_a_value_are_left_out_of_the_mean(study: TrustRuns) -> None:
    run = study.runs["small--sst"]
    assert curve(run, "saliency", "cascading", "kendall")[0].count == TEXTS - 1
    assert math.isnan(areas(run, "saliency", "cascading", "kendall")[0])


def test_a_text_that_lacks_a_point_has_no_area(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "small--sst" / SIMILARITIES
    lines = path.read_text().splitlines()
    gone = next(i for i, line in enumerate(lines) if '"text": 9' in line and '"draw": 0' in line)
    other = next(i for i, line in enumerate(lines) if i > gone and '"text": 9' in line)
    path.write_text("\n".join(line for i, line in enumerate(lines) if i not in (gone, other)) + "\nbroken\n")
    run = read_trust(tmp_path).runs["small--sst"]
    assert (run.missing, run.dropped) == (2, 1)
    assert 9 not in areas(run, METHODS[0], "cascading", "spearman")
    page = write(tmp_path, draw=False).read_text()
    assert "small--sst: unfinished" in page
    assert "1 broken line in the records" in page


def test_effects_and_texts_that_held(study: TrustRuns) -> None:
    run = study.runs["small--sst"]
    variant = AttackVariant("embedding", "unconstrained")
    found = effects(run, "saliency", variant, "rank_change")
    assert sorted(found) == [0, 1, *range(3, ATTACKED)]
    assert all(0.8 <= value <= 0.82 for value in found.values())
    sizes = effects(run, "saliency", variant, "absolute_probability_change")
    assert list(sizes.values()) == pytest.approx([0.24] * (ATTACKED - 1))
    assert held(run, "saliency", variant) == (ATTACKED - 2, ATTACKED - 1)


@pytest.mark.parametrize(
    ("says", "finding", "count"),
    [
        ("gone at once", "holds", TEXTS),
        ("never moves", "holds", TEXTS),
        ("gradients depend more", "holds", TEXTS),
        ("backwards", "fails", TEXTS),
        ("beats noise", "holds", ATTACKED - 1),
        ("nearly as effective", "holds", ATTACKED - 1),
        ("as effective", "fails", ATTACKED - 1),
        ("not attacked", "missing", 0),
    ],
)
def test_claims_are_judged_by_paired_intervals(stated: list[Verdict], says: str, finding: str, count: int) -> None:
    found = [verdict for verdict in stated if verdict.says == says]
    assert len(found) == (3 if says == "gone at once" else 1)
    assert {(verdict.finding, verdict.difference.count) for verdict in found} == {(finding, count)}


def test_a_claim_says_what_it_compares(stated: list[Verdict]) -> None:
    found = {verdict.says: verdict for verdict in stated}
    assert found["beats noise"].row == "saliency (constrained)"
    assert found["beats noise"].than == "saliency (noise, constrained)"
    assert found["never moves"].metric == "spearman, the last 12 of 12 blocks"
    one = found["nearly as effective"]
    assert one.than == "saliency (unconstrained) -0.3"
    assert one.difference.mean == pytest.approx(one.mean - one.than_mean)
    plain_one = found["as effective"]
    assert one.difference.mean == pytest.approx(plain_one.difference.mean + 0.3)


def test_tables_say_what_the_records_say(study: TrustRuns) -> None:
    grids = {grid.title: grid for grid in area_tables(study)}
    assert len(grids) == 6
    cells = dict(grids["Spearman's correlation, cascading"].rows)
    assert cells[STEADY][0].mean == "1.00"
    expected = np.mean(list(areas(study.runs["large--sst"], "saliency", "cascading", "spearman").values()))
    assert cells["saliency"][2].mean == f"{expected:.2f}"
    attacked = {grid.title: dict(grid.rows) for grid in attack_tables(study)}
    assert (
        attacked["Texts with a change that keeps the prediction"]["saliency: constrained"][0].mean
        == f"{ATTACKED - 2} of {ATTACKED - 1}"
    )
    assert "saliency: random noise, constrained" in attacked["rank change"]
    # What is small is not written as nothing.
    assert float(attacked["top-k sum change"]["saliency: constrained"][0].mean) == pytest.approx(0.0007)
    reasons = dict(left_out(study))
    assert reasons["random: randomisation"] == "it asks the <model> for nothing"
    assert "attacks on 1 text (number 3)" in reasons
    assert "saliency: constrained" in terminal_text.plain(Group(*shown(sections(study))))


def written_without_torch(folder: Path) -> Path:
    """The page, written with its figures by a process of its own, which must not import torch."""
    code = (
        "import sys; from pathlib import Path; from raison.studies.reports import write; "
        f"print(write(Path({str(folder)!r}))); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


@pytest.mark.parametrize(("axis", "data"), [("parameters", ("sst", "nli")), ("model", ("sst",))])
def test_the_page_has_figures_and_nothing_foreign(tmp_path: Path, axis: str, data: tuple[str, ...]) -> None:
    fill(tmp_path, axis, data)
    path = write(tmp_path) if axis == "parameters" else written_without_torch(tmp_path)
    page = path.read_text(encoding="utf-8")
    # Two orders of three runs on each data set; three measures there, as lines or as bars for each objective.
    assert page.count("<svg") == len(data) * (6 + 3 * (1 if axis == "parameters" else 2))
    assert "<ignores" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert ("Spearman" in page, "full" in page, "all" in page) == (True, True, True)
    for name in ("tables.md", "tables.tex"):
        text = path.with_name(name).read_text(encoding="utf-8")
        assert "Kendall" in text
        assert "left out" in text.lower() or name == "tables.tex"


def test_one_text_and_one_block_still_draw(tmp_path: Path) -> None:
    fill(tmp_path)
    found = json.loads((tmp_path / "trust.json").read_text())
    for run in found["runs"]:
        run["randomisation"] |= {"texts": 1, "blocks": 1}
        run["attacks"] |= {"texts": 1}
    (tmp_path / "trust.json").write_text(json.dumps(found))
    assert "<svg" in write(tmp_path).read_text(encoding="utf-8")


def test_nothing_done_yet_is_said(tmp_path: Path) -> None:
    fill(tmp_path)
    for run in MODELS:
        (tmp_path / f"{run}--sst" / SIMILARITIES).unlink()
        (tmp_path / f"{run}--sst" / ATTACKS).unlink()
    page = write(tmp_path).read_text(encoding="utf-8")
    assert "unfinished, 0 of" in page
    assert "missing" in page


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no study of trust"):
        read_trust(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    (tmp_path / "trust.json").write_text('{"schema": 99}')
    with pytest.raises(DataError, match="newer version"):
        read_trust(tmp_path)
