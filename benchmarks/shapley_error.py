"""Error of Shapley estimators at equal evaluations, against the exact values of 12 units, beside captum, shap, shapiq.

The games: 24 sentences of 12 words, the demo classifier's probability of its prediction under each of the 4096 keeps
(twelve of them, "held out", were not looked at before the Gaussian process was settled; the damping of scarce samples
was chosen on all of them, at other seeds);
12 random networks over keeps (interactions of every order, as a model has); 12 games of independent noise, which no
estimator can guess. The error is |phi - exact| / |exact| (L2), the mean of four draws, its mean over a set's games with
a 95 % interval (percentile bootstrap over games); behind it the ratio to the best peer's mean at that budget, below 1
where better.

A budget counts the rows that an estimator hands to the game, both ends included; captum and shap get the largest
setting that stays within, which is checked. shap runs with l1_reg=False, since it keeps ten units otherwise. The
partition rows are Owen values, which are not the Shapley values: they stop improving once exact, and are compared with
shap's partition alone.

`python benchmarks/shapley_error.py [FILE]` keeps the sentences' logits in FILE (.npy, in the temporary folder unless
given) and goes on where it ends: 98 304 forward passes the first time, about ten minutes from then on.
"""

import importlib.util
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import shap
import torch
from captum.attr import KernelShap as CaptumKernelShap
from captum.attr import ShapleyValueSampling as CaptumSampling
from common import RESULTS, save

import raison
from raison.core.inputs.encoding import Encoding
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.problem import Evaluations, KeepKey, Ledger, Problem
from raison.core.targets.target import Target
from raison.methods.kernel_shap import KernelShap
from raison.methods.partition_shap import PartitionShap
from raison.methods.shapley_sampling import ShapleySampling
from raison.numerics.shapley.orders import all_coalitions, exact_shapley
from raison.numerics.statistics.bootstrap import mean_interval

UNITS = 12
BUDGETS = (32, 64, 128, 256, 512, 1024)
KEEPS = all_coalitions(UNITS)
SENTENCES = (
    "the jokes land late but the old detective is a joy throughout",
    "nothing here feels earned and the final twist insults the patient viewer",
    "a small tender drama that never once begs for your easy tears",
    "loud clumsy and far too long this sequel wastes its gifted cast",
    "it is not the disaster that many feared just a dull evening",
    "her voice alone could rescue a script as thin as this one",
    "the camera lingers on empty rooms until boredom turns into strange beauty",
    "i wanted to love it yet every scene kept pushing me away",
    "sharp funny and humane it is the rare comedy that trusts silence",
    "a handsome mess with two good songs and no reason to exist",
    "what begins as a cheap thriller slowly becomes something close to art",
    "the children are wonderful the adults dreadful and the dog steals everything",
    "this gentle western forgets the guns and remembers how people really talk",
    "the acting is fine but the story has no pulse at all",
    "a brilliant first hour is followed by the worst second hour imaginable",
    "we left early and the rain outside was far more exciting company",
    "never has a tale about taxes been so thrilling or so kind",
    "the sound is awful the pictures are worse and the message hollow",
    "silly sweet and short it does exactly what a matinee should do",
    "my friends hated it but i left the cinema smiling and moved",
    "too many villains too little wit and a hero made of wood",
    "it is unfair to call this bad and generous to praise it",
    "the sea looks marvellous while the sailors recite their dreary speeches again",
    "an actor of her talent deserves better than this lazy costume party",
)
DRAWS = 4
HELD_OUT = 12
"""The first sentences; the others were looked at while the estimators were chosen."""


@dataclass
class Game:
    """A game over 12 units as a table, which counts the rows that it is asked for."""

    values: np.ndarray
    rows: int = 0
    exact: np.ndarray = field(init=False)
    evaluations: Evaluations = field(init=False)
    """The same table as logits (0, value) of one text."""

    def __post_init__(self) -> None:
        self.exact = exact_shapley(self.values)
        logits = torch.stack([torch.zeros(len(KEEPS), dtype=torch.float64), torch.from_numpy(self.values)], dim=1)
        keys = [KeepKey.of(0, "mask", keep.tobytes()) for keep in KEEPS]
        self.evaluations = Evaluations(dict(zip(keys, logits, strict=True)))

    def __call__(self, keeps: np.ndarray) -> np.ndarray:
        self.rows += len(keeps)
        return self.values[np.asarray(keeps, dtype=np.int64) @ (1 << np.arange(UNITS))]

    def error(self, phi: np.ndarray) -> float:
        return float(np.linalg.norm(phi - self.exact) / np.linalg.norm(self.exact))


Estimator = Callable[[Game, int, int], np.ndarray]
"""Scores of a game from a budget and a seed."""


def ours(model: LanguageModel, encoding: Encoding, create: Callable[[int], Method]) -> Estimator:
    """The method itself, on a problem whose evaluations are all known."""

    def estimate(game: Game, budget: int, seed: int) -> np.ndarray:
        target = Target(torch.ones(1, dtype=torch.long), None, "logit")
        problem = Problem(model, encoding, target, "mask", Ledger.empty(1), game.evaluations)
        scores = create(budget).attribute(problem, [np.random.default_rng(seed)])[0]
        game.rows += problem.ledger.evaluations[0]
        return scores.numpy()

    return estimate


def captum_kernel(game: Game, budget: int, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    explainer = CaptumKernelShap(lambda keeps: torch.from_numpy(game(keeps.numpy())))
    return (
        explainer.attribute(torch.ones(1, UNITS), 0.0, n_samples=budget, perturbations_per_eval=64)[0].double().numpy()
    )


def captum_sampling(game: Game, budget: int, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    explainer = CaptumSampling(lambda keeps: torch.from_numpy(game(keeps.numpy())))
    orders = (budget - 1) // UNITS
    return (
        explainer.attribute(torch.ones(1, UNITS), 0.0, n_samples=orders, perturbations_per_eval=64)[0].double().numpy()
    )


def shap_kernel(game: Game, budget: int, seed: int) -> np.ndarray:
    explainer = shap.KernelExplainer(game, np.zeros((1, UNITS)), seed=seed)
    # The two ends are evaluated besides.
    return explainer.shap_values(np.ones((1, UNITS)), nsamples=budget - 2, l1_reg=False, silent=True)[0]


def shap_permutation(game: Game, budget: int, seed: int) -> np.ndarray:
    explainer = shap.explainers.Permutation(game, np.zeros((1, UNITS)), seed=seed)
    return explainer(np.ones((1, UNITS)), max_evals=budget, silent=True).values[0]


def shap_partition(game: Game, budget: int, seed: int) -> np.ndarray:
    np.random.seed(seed)
    masker = shap.maskers.Partition(np.zeros((1, UNITS)), clustering=balanced())
    return shap.explainers.Partition(game, masker)(np.ones((1, UNITS)), max_evals=budget, silent=True).values[0]


def balanced() -> np.ndarray:
    """The tree of partition_shap in scipy's format: rows of two children, height and size, children first."""
    rows: list[tuple[float, ...]] = []

    def grow(first: int, last: int) -> int:
        if last - first == 1:
            return first
        middle = (first + last) // 2
        left, right = grow(first, middle), grow(middle, last)
        rows.append((left, right, last - first, last - first))
        return UNITS + len(rows) - 1

    grow(0, UNITS)
    return np.array(rows, dtype=np.float64)


def shapiq_estimator(name: str, settings: dict[str, bool], game: Game, budget: int, seed: int) -> np.ndarray:
    estimator = getattr(importlib.import_module("shapiq"), name)(UNITS, random_state=seed, **settings)
    found = estimator.approximate(budget, lambda keeps: game(np.atleast_2d(keeps)) - game.values[0])
    return found.get_n_order_values(1)


def shapiq_peers() -> dict[str, Estimator]:
    """Coalitions in pairs where that is a setting: it is the better one."""
    if importlib.util.find_spec("shapiq") is None:
        return {}
    paired = ("KernelSHAP", "kADDSHAP", "SVARM", "UnbiasedKernelSHAP")
    settings: dict[str, dict[str, bool]] = {name: {"pairing_trick": True} for name in paired}
    settings["PermutationSamplingSV"] = {}
    return {f"shapiq {name}": partial(shapiq_estimator, name, of_name) for name, of_name in settings.items()}


PEERS: dict[str, Estimator] = {
    "captum KernelShap": captum_kernel,
    "captum ShapleyValueSampling": captum_sampling,
    "shap KernelExplainer": shap_kernel,
    "shap PermutationExplainer": shap_permutation,
    **shapiq_peers(),
}


def sentence_games(model: LanguageModel, path: Path) -> list[Game]:
    """The predicted class's probability of each sentence under all keeps."""
    known = list(np.load(path)) if path.exists() else []
    for sentence in SENTENCES[len(known) :]:
        encoding = model.encode([sentence], "word")
        known.append(model.masked_logits(encoding, [torch.from_numpy(KEEPS)], "mask")[0].double().numpy())
        np.save(path, np.stack(known))
    games = []
    for logits in known[: len(SENTENCES)]:
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        games.append(Game((odds / odds.sum(axis=1, keepdims=True))[:, logits[-1].argmax()]))
    return games


def network_game(seed: int) -> Game:
    rng = np.random.default_rng(seed)
    hidden = np.tanh(KEEPS @ rng.normal(size=(UNITS, 16)) * 0.6 + rng.normal(size=16))
    return Game(1 / (1 + np.exp(-hidden @ rng.normal(size=16))))


def errors(estimator: Estimator, games: list[Game], budget: int) -> np.ndarray:
    found = []
    for number, game in enumerate(games):
        drawn = []
        for draw in range(DRAWS):
            game.rows = 0
            drawn.append(game.error(estimator(game, budget, 1000 * draw + number)))
            assert game.rows <= budget, (budget, game.rows)
        found.append(np.mean(drawn))
    return np.array(found)


def tabulate(
    name: str, games: list[Game], own: dict[str, Estimator], peers: dict[str, Estimator]
) -> list[dict[str, object]]:
    found = {label: [errors(one, games, budget) for budget in BUDGETS] for label, one in (own | peers).items()}
    best = [min(float(found[label][i].mean()) for label in peers) for i in range(len(BUDGETS))]
    rows = []
    for label, columns in found.items():
        row: dict[str, object] = {"games": f"{name} ({len(games)})", "estimator": label}
        for budget, values, least in zip(BUDGETS, columns, best, strict=True):
            mean, low, high = mean_interval(values.tolist())
            row[str(budget)] = f"{mean:.3f} [{low:.3f}, {high:.3f}] x{mean / least:.2f}"
        rows.append(row)
    return rows


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.getLogger("shap").setLevel(logging.ERROR)
    path = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir() + "/shapley_error.npy")
    model = raison.load("demo/sst2")
    create = partial(ours, model, model.encode([SENTENCES[0]], "word"))
    own = {
        "kernel_shap": create(KernelShap),
        "kernel_shap(estimator='least_squares')": create(lambda b: KernelShap(b, estimator="least_squares")),
        "kernel_shap(estimator='gaussian_process')": create(lambda b: KernelShap(b, estimator="gaussian_process")),
        "shapley_sampling": create(ShapleySampling),
    }
    partition = {"partition_shap": create(PartitionShap)}
    sentences = sentence_games(model, path)
    sets = {
        "demo classifier, held out": sentences[:HELD_OUT],
        "demo classifier, looked at": sentences[HELD_OUT:],
        "networks": [network_game(seed) for seed in range(12)],
        "noise": [Game(np.random.default_rng(seed).normal(size=len(KEEPS))) for seed in range(12)],
    }
    rows = []
    for name, games in sets.items():
        rows += tabulate(name, games, own, PEERS)
        rows += tabulate(name, games, partition, {"shap PartitionExplainer": shap_partition})
        print(name, "done", flush=True)
    save("shapley_error", rows)
    if not shapiq_peers():
        page = RESULTS / "shapley_error.md"
        page.write_text(page.read_text() + "\nshapiq was not installed: its estimators are not in the table.\n")


if __name__ == "__main__":
    main()
