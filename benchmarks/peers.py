"""Time against peers at equal numbers of evaluations, on mixed-length texts: captum, lime, shap, and a literal loop.

Each peer is given the same model, one text at a time (their interface for texts of different length), at its default
and at several batch sizes, of which the best is found in the same run. What each of them runs through the model's
layers is counted on two texts, so that the table itself says how equal they are. Sequential Integrated Gradients stands
against one path at a time with all its points as one batch, which is how time_interpret computes it, without its second
embedding. What evaluates masked texts is measured at two numbers of evaluations, for the more there are, the less
weighs what each text takes beside them (its prediction, the check of bfloat16); defaults, which are slow, at the first
alone. `--quick` tries everything on two texts and writes nothing.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from captum.attr import IntegratedGradients, KernelShap, Lime
from common import alternately, minilm, mixed_texts, save
from lime.lime_text import LimeTextExplainer
from shap import Explainer
from torch import Tensor
from transformers import pipeline

import raison
from raison.models.adapters.classifier import Classifier

TEXTS, STEPS, ROUNDS = 24, 20, 3
SAMPLES = (64, 256)
SEQUENTIAL_STEPS = 10
BATCHES = (16, 32, 64)
BF16 = "raison bfloat16"
Work = Callable[[list[str]], None]


@dataclass(frozen=True)
class Contest:
    """One method: ours, in half precision where that applies, and peers by setting; defaults end in "default"."""

    method: str
    ours: Work
    peers: dict[str, Work]
    half: Work | None = None
    share: int = 1
    """One of so many texts is explained, where a method takes many passes."""


def ours(model: Classifier, texts: list[str], method: str, unit: str = "token", precision: str = "float32") -> None:
    raison.explain(model, texts, method, unit=unit, precision=precision, progress=False)


def ends(model: Classifier, text: str) -> tuple[Tensor, Tensor, Tensor, int]:
    """Ids, which are special, ids with all others masked, and the predicted class."""
    encoded = model.tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"].bool()
    with torch.no_grad():
        target = int(model.model(input_ids=ids).logits.argmax())
    return ids, special, torch.where(special, ids, model.tokenizer.mask_token_id), target


def captum_ig(model: Classifier, texts: list[str], batch: int | None) -> None:
    """Same path, same nodes, same number of points."""

    def forward(embeds: Tensor) -> Tensor:
        return model.model(inputs_embeds=embeds).logits.softmax(-1)

    explainer = IntegratedGradients(forward)
    for text in texts:
        ids, _, masked, target = ends(model, text)
        table = model.model.get_input_embeddings()
        with torch.no_grad():
            start, end = table(masked), table(ids)
        explainer.attribute(end, start, target=target, n_steps=STEPS, internal_batch_size=batch)


def captum_masks(model: Classifier, texts: list[str], kind: type[KernelShap | Lime], samples: int, batch: int) -> None:
    """Every token is a feature; specials are grouped into one that is not counted here."""

    def forward(ids: Tensor) -> Tensor:
        return model.model(input_ids=ids).logits.softmax(-1)

    explainer = kind(forward)
    for text in texts:
        ids, special, masked, target = ends(model, text)
        features = torch.where(special, 0, (~special).cumsum(1))
        with torch.no_grad():
            explainer.attribute(
                ids, masked, target=target, feature_mask=features, n_samples=samples, perturbations_per_eval=batch
            )


def lime_words(model: Classifier, texts: list[str], samples: int, batch: int) -> None:
    """lime's own words and ten features, masked in place; what it asks for is run in batches of this size."""

    def probabilities(rows: list[str]) -> np.ndarray:
        found = []
        for start in range(0, len(rows), batch):
            inputs = model.tokenizer(rows[start : start + batch], return_tensors="pt", padding=True)
            with torch.no_grad():
                found.append(model.model(**inputs).logits.softmax(-1))
        return torch.cat(found).numpy()

    explainer = LimeTextExplainer(
        class_names=list(model.classes), bow=False, mask_string=model.tokenizer.mask_token, random_state=0
    )
    for text in texts:
        explainer.explain_instance(text, probabilities, num_samples=samples)


def shap_partition(model: Classifier, texts: list[str], samples: int, batch: int) -> None:
    """shap's default for text: partition SHAP over its own tree, through a pipeline of transformers."""
    pipe = pipeline("text-classification", model=model.model, tokenizer=model.tokenizer, top_k=None, batch_size=batch)
    explainer = Explainer(pipe, silent=True)
    for text in texts:
        explainer([text], max_evals=samples, batch_size=batch)


def one_path_at_a_time(model: Classifier, texts: list[str]) -> None:
    """Sequential Integrated Gradients as a loop over tokens: all points of a token's path are one batch."""
    table = model.model.get_input_embeddings()
    points = ((torch.arange(SEQUENTIAL_STEPS) + 0.5) / SEQUENTIAL_STEPS)[:, None]
    for text in texts:
        ids, special, _, target = ends(model, text)
        with torch.no_grad():
            whole, masked = table(ids)[0], table(torch.tensor([model.tokenizer.mask_token_id]))[0]
        for token in (~special[0]).nonzero()[:, 0].tolist():
            path = whole.expand(SEQUENTIAL_STEPS, -1, -1).clone()
            path[:, token] = masked + points * (whole[token] - masked)
            path.requires_grad_()
            value = model.model(inputs_embeds=path).logits.softmax(-1)[:, target].sum()
            (slopes,) = torch.autograd.grad(value, path)
            _ = (slopes[:, token].mean(0) * (whole[token] - masked)).sum()


def contests(model: Classifier) -> list[Contest]:
    gradients = {f"captum {batch or 'default'}": partial(captum_ig, model, batch=batch) for batch in (None, 10)}
    sequential = f"sequential_integrated_gradients(steps={SEQUENTIAL_STEPS})"
    found = [
        Contest("integrated_gradients", partial(ours, model, method=f"integrated_gradients(steps={STEPS})"), gradients),
        Contest(
            "sequential_integrated_gradients",
            partial(ours, model, method=sequential),
            {"one path at a time": partial(one_path_at_a_time, model)},
            share=4,
        ),
    ]
    return found + [contest for number, samples in enumerate(SAMPLES) for contest in masked(model, samples, not number)]


def masked(model: Classifier, samples: int, defaults: bool) -> list[Contest]:
    """The methods that evaluate masked texts, and their peers at this number of evaluations."""

    def captum(kind: type[KernelShap | Lime]) -> dict[str, Work]:
        sizes = ({"captum default": 1} if defaults else {}) | {f"captum {batch}": batch for batch in BATCHES}
        return {
            name: partial(captum_masks, model, kind=kind, samples=samples, batch=batch) for name, batch in sizes.items()
        }

    limes = {f"lime {batch}": partial(lime_words, model, samples=samples, batch=batch) for batch in BATCHES}
    sizes = ({"shap default": 1} if defaults else {}) | {"shap 32": 32}
    shaps = {name: partial(shap_partition, model, samples=samples, batch=batch) for name, batch in sizes.items()}
    peers = {"kernel_shap": captum(KernelShap), "lime": captum(Lime) | limes, "partition_shap": shaps}
    return [
        Contest(
            f"{method}({samples})",
            partial(ours, model, method=f"{method}(samples={samples})"),
            others,
            partial(ours, model, method=f"{method}(samples={samples})", precision="bfloat16"),
            share=max(2, samples // 64),
        )
        for method, others in peers.items()
    ]


@contextmanager
def counted(model: Classifier) -> Iterator[list[int]]:
    """Sequences that the model and its twin of 16 bits are given, a number for each pass."""
    rows: list[int] = []

    def count(_module: object, args: tuple[Tensor, ...], kwargs: dict[str, Tensor], _output: object) -> None:
        rows.append((args[0] if args else kwargs["hidden_states"]).shape[0])

    # Above the embeddings: some peers give ids, others embeddings. A twin is made with the hook, for the model changed.
    handle = model.core.base_model.encoder.register_forward_hook(count, with_kwargs=True)
    try:
        yield rows
    finally:
        handle.remove()


def measured(model: Classifier, contest: Contest, texts: list[str], rounds: int) -> dict[str, object]:
    """One row of the table: seconds, and how much longer the peers take."""
    some = texts[:: contest.share] if len(texts) > contest.share else texts
    works = {"raison": contest.ours} | ({} if contest.half is None else {BF16: contest.half}) | contest.peers
    counts = {}
    for name, work in works.items():
        with counted(model) as rows:
            # Nothing is timed cold.
            work(some[:2])
        counts[name] = sum(rows) / len(some[:2])
    found = alternately({name: partial(work, some) for name, work in works.items()}, rounds)
    print(contest.method, found, counts, flush=True)
    own, half = found.pop("raison"), found.pop(BF16, float("nan"))
    best = min(found, key=found.__getitem__)
    defaults = [name for name in found if name.endswith("default")]
    default = found[defaults[0]] if defaults else float("nan")
    return {
        "method": contest.method,
        "texts": len(some),
        "sequences per text": counts["raison"],
        "of the best peer": counts[best],
        "raison s": own,
        "best peer s": found[best],
        "best peer": best,
        "default s": default,
        "best / raison": found[best] / own,
        "default / raison": default / own,
        "bfloat16 s": half,
        "best / bfloat16": found[best] / half,
    }


def main() -> None:
    warnings.filterwarnings("ignore")
    quick = "--quick" in sys.argv
    model = minilm()
    texts = mixed_texts(2 if quick else TEXTS)
    rows = [measured(model, contest, texts, 1 if quick else ROUNDS) for contest in contests(model)]
    if not quick:
        save("peers", rows)


if __name__ == "__main__":
    main()
