"""Integrated Gradients and KernelSHAP against captum, at equal numbers of evaluations, on 64 mixed-length texts.

captum is given the same model function, one text at a time (its interface for texts of different length), its default
setting, and its best over several values of internal_batch_size or perturbations_per_eval, found in the same run.
"""

import warnings

import torch
from captum.attr import IntegratedGradients, KernelShap
from common import alternately, minilm, mixed_texts, save

import raison
from raison.models.classifier import Classifier

TEXTS, STEPS, SAMPLES, ROUNDS = 64, 20, 64, 2


def ours(model: Classifier, texts: list[str], method: str) -> None:
    raison.explain(model, texts, method, unit="token", progress=False)


def captum_ig(model: Classifier, texts: list[str], batch: int | None) -> None:
    """Same path, same nodes, same number of points."""

    def forward(embeds: torch.Tensor) -> torch.Tensor:
        return model.model(inputs_embeds=embeds).logits.softmax(-1)

    explainer = IntegratedGradients(forward)
    for text in texts:
        encoded = model.tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        ids = encoded["input_ids"]
        masked = torch.where(encoded["special_tokens_mask"].bool(), ids, model.tokenizer.mask_token_id)
        table = model.model.get_input_embeddings()
        with torch.no_grad():
            start, end = table(masked), table(ids)
            target = int(model.model(input_ids=ids).logits.argmax())
        explainer.attribute(end, start, target=target, n_steps=STEPS, internal_batch_size=batch)


def captum_shap(model: Classifier, texts: list[str], batch: int) -> None:
    """Every token is a feature; specials are grouped into one that is not counted here."""

    def forward(ids: torch.Tensor) -> torch.Tensor:
        return model.model(input_ids=ids).logits.softmax(-1)

    explainer = KernelShap(forward)
    for text in texts:
        ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
        baseline = torch.full_like(ids, model.tokenizer.mask_token_id)
        with torch.no_grad():
            target = int(model.model(input_ids=ids).logits.argmax())
            explainer.attribute(ids, baseline, target=target, n_samples=SAMPLES, perturbations_per_eval=batch)


def main() -> None:
    warnings.filterwarnings("ignore")
    model = minilm()
    texts = mixed_texts(TEXTS)
    rows = []
    for work in (ours, captum_ig, captum_shap):  # nothing is timed cold
        work(model, texts[:2], {ours: "integrated_gradients", captum_ig: None, captum_shap: 16}[work])
    ig = {f"captum {batch or 'default'}": lambda batch=batch: captum_ig(model, texts, batch) for batch in (None, 10)}
    ig["raison"] = lambda: ours(model, texts, f"integrated_gradients(steps={STEPS})")
    shap = {
        f"captum {'default' if batch == 1 else batch}": lambda batch=batch: captum_shap(model, texts, batch)
        for batch in (1, 16, 32, 64)
    }
    shap["raison"] = lambda: ours(model, texts, f"kernel_shap(samples={SAMPLES})")
    for name, works in (("integrated_gradients", ig), ("kernel_shap", shap)):
        found = alternately(works, ROUNDS)
        print(name, found, flush=True)
        own = found.pop("raison")
        default = found["captum default"]
        best = min(found, key=found.__getitem__)
        rows.append(
            {
                "method": name,
                "evaluations per text": STEPS if name == "integrated_gradients" else SAMPLES,
                "raison s": own,
                "captum best s": found[best],
                "best setting": best,
                "captum default s": default,
                "best / raison": found[best] / own,
                "default / raison": default / own,
            }
        )
    save("peers", rows)


if __name__ == "__main__":
    main()
