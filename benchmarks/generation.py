"""Explaining a continuation against inseq 0.7, on SmolLM2-135M-Instruct, with the same ids and the same quantities.

inseq explains one output token at a time and scores earlier output tokens, too; here that is earlier=True. What is
compared, after summing or norming inseq's scores over the embedding's features in the method's own way:

input_x_gradient      equal: sums over features of embedding times gradient
saliency              equal: L2 norms of the gradient
integrated_gradients  equal: the same Gauss-Legendre nodes, and the embedding of the unknown token as the baseline
occlusion             equal up to sign: inseq keeps absolute values; absent tokens become the unknown token

The quantity is the output token's logit. Where earlier outputs are not scored (raison's default, which inseq does not
offer), a masked prompt is run once with the whole output after it; here each output token has masks of its own.
"""

import sys
from collections.abc import Callable

import numpy as np
import torch
from common import alternately, save
from transformers import AutoModelForCausalLM, AutoTokenizer

import raison
from raison.core.results.generation import GenerationExplanation
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.ready_made import base_weights

PROMPT = "Anna lives in Paris and Tom lives in London. Anna's city is"
OUTPUT = " the capital of France, and it is a beautiful city"
STEPS, ROUNDS = 10, 2
METHODS = {
    "input_x_gradient": "input_x_gradient",
    "saliency": "saliency",
    "integrated_gradients": f"integrated_gradients(steps={STEPS}, baseline='unk')",
    "occlusion": "occlusion",
}


def ours(generator: Generator, method: str) -> GenerationExplanation:
    """raison's scores of tokens, absent ones replaced by the unknown token."""
    settings = {"output": OUTPUT, "unit": "token", "of": "logit", "removal": "unk", "earlier": True}
    return raison.explain(generator, PROMPT, METHODS[method], **settings)


def theirs(model: object, method: str) -> np.ndarray:
    """inseq's scores, (tokens, output tokens), NaN where a token does not come before the output token."""
    settings = {"n_steps": STEPS, "internal_batch_size": STEPS} if method == "integrated_gradients" else {}
    found = model.attribute(PROMPT, PROMPT + OUTPUT, attributed_fn="logit", show_progress=False, **settings)
    scores = found.sequence_attributions[0].target_attributions
    if scores.dim() == 3:
        scores = scores.norm(dim=-1) if method == "saliency" else scores.sum(-1)
    return scores.detach().numpy()


def largest_difference(own: GenerationExplanation, other: np.ndarray, method: str) -> float:
    """Relative to the largest score."""
    differences, largest = [], 0.0
    for number, row in enumerate(own.scores):
        scores = np.abs(row) if method == "occlusion" else np.asarray(row)
        differences.append(float(np.abs(scores - other[: len(row), number]).max()))
        largest = max(largest, float(np.abs(scores).max()))
    return max(differences) / largest


def main() -> None:
    try:
        import inseq
    except ImportError:
        sys.exit("This benchmark compares with inseq, which is not installed: pip install inseq==0.7.1")
    folder = base_weights.fetch("smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    generator = raison.load(model, tokenizer)
    ours(generator, "input_x_gradient")  # nothing is timed cold
    rows = []
    for method in METHODS:
        wrapped = inseq.load_model(model, method, tokenizer=tokenizer)
        found: dict[str, object] = {}

        def keep(name: str, work: Callable[[], object], found: dict[str, object] = found) -> Callable[[], None]:
            return lambda: found.__setitem__(name, work())

        times = alternately(
            {
                "raison": keep("raison", lambda method=method: ours(generator, method)),
                "inseq": keep("inseq", lambda method=method, wrapped=wrapped: theirs(wrapped, method)),
            },
            1 if method == "occlusion" else ROUNDS,
        )
        wrapped.attribution_method.unhook()
        rows.append(
            {
                "method": method,
                "output tokens": len(found["raison"].tokens),
                "raison s": times["raison"],
                "inseq s": times["inseq"],
                "inseq / raison": times["inseq"] / times["raison"],
                "largest difference": largest_difference(found["raison"], found["inseq"], method),
            }
        )
        print(rows[-1], flush=True)
    save("generation", rows)


if __name__ == "__main__":
    main()
