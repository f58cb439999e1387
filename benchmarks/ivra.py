"""Training a model to explain itself: what a step costs against plain fine-tuning, and an explanation against a pass.

demo/sst2, all weights but the word embeddings, 16 texts of mixed length per step, one thread, processor seconds of this
process. A step is the loss, its gradients and AdamW's update. Plain fine-tuning is that of the same weights by
cross-entropy alone, as transformers computes it, without the attention read on the way. Passes are of whole batches: a
forward and a backward pass of the model count one each; a student of the same size reads half a batch. "cons, 64" is
the pairwise loss alone of 64 texts, against that of 16: 2,016 pairs and 120.
An explanation is the map of all texts, against one forward pass of the model; longer texts and a larger model of random
weights show how the ratio goes on.
"""

import time
from collections.abc import Callable

import torch
from common import alternately, mixed_texts, save
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

import raison
from raison.core.capabilities.passes import Passes
from raison.models.adapters.classifier import Classifier
from raison.models.derived.attention_explainer import Design, HeadShape, new_explainer
from raison.models.derived.trained_attention import AttentionCard, TrainedAttention
from raison.numerics.losses.interpretability import consistency_loss
from raison.training.loop.objective import TrainingBatch
from raison.training.objectives.task_and_criteria import TaskAndCriteria
from raison.training.recipes.ivra import make_trainable, trainable_copy
from raison.training.self_explaining.criterion import create_criteria
from raison.training.self_explaining.reading import Labelled, SelfExplaining
from raison.training.self_explaining.simulation import Lessons, Simulation, SimulationPlan
from raison.training.self_explaining.texts import TaughtTexts
from raison.training.settings.ivra import IvraSettings

TEXTS, ROUNDS = 16, 3
CRITERIA = ("comp", "suff", "suff_kl", "cons", "clust", "sim")


def stepped(module: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """One step of training."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-6)

    def step() -> None:
        gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    return step


def plain(texts: list[str]) -> Callable[[], None]:
    """Fine-tuning as transformers does it."""
    model = trainable_copy(raison.load("demo/sst2"))
    make_trainable(model.core, None, seed=0)
    inputs = model.tokenizer(texts, padding=True, return_tensors="pt")
    labels = torch.arange(len(texts)) % 2
    return stepped(model.core, lambda: model.core(**inputs, labels=labels).loss)


def taught(texts: list[str], criterion: str, norm: str, roll_back: bool = False) -> Callable[[], None]:
    """A step of the task's loss and one criterion."""
    settings = IvraSettings(criteria=(criterion,), norm=norm)
    model = trainable_copy(raison.load("demo/sst2"))
    make_trainable(model.core, None, seed=0)
    encoding = model.encode(texts, "token")
    explainer = new_explainer(HeadShape.of(model, encoding), settings.design)
    network = SelfExplaining(model, explainer, "units")
    labelled = Labelled(encoding, (torch.arange(len(texts)) % 2)[:, None])
    criteria = create_criteria(settings.criteria)
    student = None
    if criteria[0].trains_student:
        other = trainable_copy(raison.load("demo/sst2"))
        make_trainable(other.core, None, seed=0)
        skeleton = SelfExplaining(other, new_explainer(HeadShape.of(other, encoding), settings.design), "units")
        plan = SimulationPlan(batch_size=len(texts) // 2, roll_back=roll_back)
        student = Simulation(skeleton, Lessons.of(encoding, encoding), network, plan)
    module = TaughtTexts(network, labelled, labelled, student)
    module.states = criteria[0].reads_states
    objective, rows = TaskAndCriteria(((criteria[0], 1.0),)), torch.arange(len(texts))
    module.train()
    return stepped(module, lambda: objective.loss(module, TrainingBatch({"rows": rows}, rows)))


PASSES = {"comp": 4, "suff": 4, "suff_kl": 4, "cons": 2, "clust": 2, "sim": 6.0, "sim, rolled back": 7.5}
"""Of whole batches, forward and backward, where plain fine-tuning has 2; sim reads 8 texts: the model once more (1
forward and 1 backward pass of half a batch), the student twice (2 and 2), and once back through a backward pass (2)."""


def training(texts: list[str]) -> list[dict[str, object]]:
    """Seconds per step."""
    functions = {"plain": plain(texts)}
    for norm in ("softmax", "sparsemax"):
        functions |= {f"{name} {norm}": taught(texts, name, norm) for name in CRITERIA}
    functions["sim, rolled back softmax"] = taught(texts, "sim", "softmax", roll_back=True)
    times = alternately(functions, ROUNDS, time.process_time)
    return [
        {
            "what": f"a step with {name.rpartition(' ')[0]}",
            "norm": name.rpartition(" ")[2],
            "texts": len(texts),
            "passes / plain": PASSES[name.rpartition(" ")[0]] / 2,
            "seconds": times[name],
            "against, s": times["plain"],
            "ratio": times[name] / times["plain"],
        }
        for name in functions
        if name != "plain"
    ]


def pairwise() -> list[dict[str, object]]:
    """The consistency loss alone, of 64 texts and of 16."""
    generator = torch.Generator().manual_seed(0)

    def loss(count: int) -> Callable[[], None]:
        shares = torch.rand(count, 32, generator=generator).softmax(1).requires_grad_()
        states = torch.randn(count, 32, 384, generator=generator, requires_grad=True)
        return lambda: consistency_loss(shares, states, 0.01, 1e-6).backward()

    times = alternately({"64": loss(64), "16": loss(16)}, 20, time.process_time)
    return [
        {
            "what": "cons, the loss of 64 texts against 16",
            "norm": "softmax",
            "texts": 64,
            "passes / plain": "",
            "seconds": times["64"],
            "against, s": times["16"],
            "ratio": times["64"] / times["16"],
        }
    ]


def explaining(model: Classifier, texts: list[str], name: str) -> list[dict[str, object]]:
    """Seconds per explanation of all texts, against one forward pass."""
    encoding = model.encode(texts, "token", True)
    shape = HeadShape.of(model, encoding)

    def passes() -> None:
        with torch.no_grad():
            for rows in model.ask(Passes).batches(encoding):
                model.ask(Passes).logits(encoding.select(rows))

    functions: dict[str, Callable[[], object]] = {"pass": passes}
    for form, norm in (("ivra", "softmax"), ("ivra", "sparsemax"), ("smat", "softmax")):
        design = Design(form, norm)
        card = AttentionCard(design, shape, model.name, model.classes, "", (), ())
        trained = TrainedAttention(card, new_explainer(shape, design).requires_grad_(False))
        functions[f"{form} {norm}"] = lambda trained=trained: trained.maps(model, encoding)
    times = alternately(functions, ROUNDS, time.process_time)
    return [
        {
            "what": f"{form} on {name}, {max(encoding.lengths)} tokens",
            "norm": norm,
            "texts": len(texts),
            "passes / plain": 1,
            "seconds": times[f"{form} {norm}"],
            "against, s": times["pass"],
            "ratio": times[f"{form} {norm}"] / times["pass"],
        }
        for form, norm in (("ivra", "softmax"), ("ivra", "sparsemax"), ("smat", "softmax"))
    ]


def base_size(tokenizer: object) -> Classifier:
    """A BERT of the usual size, with random weights: its speed does not depend on them."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig()).eval()
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def main() -> None:
    """Measure on one thread."""
    torch.set_num_threads(1)
    model = raison.load("demo/sst2")
    texts = mixed_texts(TEXTS)
    rows = [*training(texts), *pairwise(), *explaining(model, texts, "demo/sst2")]
    rows += explaining(model, [" ".join(texts)[:1200]] * 4, "demo/sst2")
    rows += explaining(base_size(model.tokenizer), texts[:8], "a BERT of 12 layers")
    save("ivra", rows)


if __name__ == "__main__":
    main()
