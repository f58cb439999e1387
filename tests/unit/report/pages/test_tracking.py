"""Explanations that trackers of experiments keep: MLflow and W&B themselves, and stand-ins with their signatures."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import raison
from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from tests.unit.report.explanations.test_html import REVIEW, explain


@dataclass
class MlflowRun:
    """As the module mlflow."""

    kept: dict[str, str] = field(default_factory=dict)

    def log_artifact(self, local_path: str, artifact_path: str | None = None, run_id: str | None = None) -> None:
        assert (artifact_path, run_id) == (None, None)
        self.kept[Path(local_path).name] = Path(local_path).read_text(encoding="utf-8")


@dataclass
class WandbRun:
    """As what wandb.init() returns."""

    kept: dict[str, str] = field(default_factory=dict)

    def log_artifact(
        self,
        artifact_or_path: str,
        name: str | None = None,
        type: str | None = None,
        aliases: list[str] | None = None,
    ) -> str:
        assert (name, type, aliases) == (None, None, None)
        self.kept[Path(artifact_or_path).name] = Path(artifact_or_path).read_text(encoding="utf-8")
        return "artifact"


@pytest.mark.parametrize("run", [MlflowRun(), WandbRun()])
def test_page_and_numbers_are_kept(run: MlflowRun | WandbRun) -> None:
    e = explain(REVIEW)
    raison.log(e, run, "review")
    assert sorted(run.kept) == ["review.html", "review.json"]
    assert Explanation.from_json(run.kept["review.json"]) == e
    assert run.kept["review.html"] == e.to_html()
    raison.log([e, e], run)
    assert run.kept["explanation.html"].count("<article") == 2


def test_what_keeps_no_files_is_refused() -> None:
    with pytest.raises(InputError, match="dict has no log_artifact: give the module mlflow"):
        raison.log(explain(REVIEW), {})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="extension or folder"):
        raison.log(explain(REVIEW), MlflowRun(), "../up")


@pytest.mark.filterwarnings("ignore")  # what MLflow warns of is MLflow's own
def test_mlflow_itself_keeps_them(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow-skinny with SQLAlchemy and alembic, or mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("kept", f"file://{tmp_path}/artifacts"))
    e = explain(REVIEW)
    with mlflow.start_run():
        raison.log(e, mlflow, "review")
    [page] = tmp_path.rglob("review.html")
    [numbers] = tmp_path.rglob("review.json")
    assert page.read_text(encoding="utf-8") == e.to_html()
    assert Explanation.from_json(numbers.read_text(encoding="utf-8")) == e


@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_itself_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb", reason="needs wandb")
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "staged"))
    e = explain(REVIEW)
    with wandb.init(project="kept", dir=str(tmp_path), mode="offline") as run:
        raison.log(e, run, "review")
    # Offline, artifacts wait for `wandb sync` under names of their own.
    kept = [path.read_text(encoding="utf-8") for path in (tmp_path / "staged").rglob("*") if path.is_file()]
    assert e.to_html() in kept
    assert [Explanation.from_json(text) for text in kept if text.startswith("{")] == [e]
