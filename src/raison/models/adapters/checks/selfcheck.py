"""Self-checks of an adapter on a real text: which capabilities work, found by trying."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.attention_layers import AttentionLayers
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.capabilities.rules import BackwardRules
from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.core.errors import RaisonError, first_line
from raison.core.inputs.encoding import Encoding
from raison.core.internals.rules import Relevance
from raison.core.model import LanguageModel
from raison.core.targets.target import Target
from raison.models.adapters.checks.determinism import change
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import QUESTION
from raison.models.passes.outputs.heads import class_logits
from raison.models.passes.outputs.multi_input_outputs import Reads
from raison.models.passes.outputs.readout import WordReadout
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.eval_mode import drawing

TEXT = "The plot is thin, but the acting is a quiet pleasure."

_SAME = "equal calls give equal answers"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check, with the number or the reason."""

    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class _SelfCheck:
    """A check, and the capability that a failure removes."""

    name: str
    capability: type[Capability] | None
    run: Callable[[Classifier, Encoding], Checked]


@dataclass(frozen=True, slots=True)
class SelfCheckFinding:
    """One check: whether it passed, with the number or the reason. A failure removes `capability`."""

    check: str
    passed: bool
    detail: str
    capability: type[Capability] | None = None


def selfcheck(model: Classifier, text: str = TEXT) -> list[SelfCheckFinding]:
    """Check every capability that the adapter claims on one text: about 12 forward and 4 backward passes."""
    encoding = model.encode([(QUESTION, text) if model.pairs else model.use.probe(text)], "token")
    checks = [
        _SelfCheck("the adapter's prediction equals the plain model's", None, _plain),
        _SelfCheck(_SAME, None, _repeated),
        _SelfCheck("padding changes nothing", None, _padding),
        _SelfCheck("keeping every unit equals the plain text", None, _kept),
        _SelfCheck("embeddings in place of ids give the same output", WordEmbeddings, _embeds),
        _SelfCheck("gradients reach all embeddings", WordEmbeddings, _gradients),
        _SelfCheck("intermediate predictions are those of shorter texts", StepLogits, _steps),
        _SelfCheck("tapped attention equals the model's own", ReadableAttention, _tap),
        _SelfCheck("rows of attention sum to 1", ReadableAttention, _rows),
        _SelfCheck("the head reads known positions", ReadableAttention, _pooling),
        _SelfCheck("recording the attention of every layer changes nothing", AttentionLayers, _layers),
        _SelfCheck("backward rules do not change the prediction", BackwardRules, _rules),
        _SelfCheck("layers rebuilt from their parts give the model's own states", Anatomy, _anatomy),
        _SelfCheck("the model's own attention, put in its place, changes nothing", ReplaceableAttention, _put_in),
    ]
    return [
        _finding(check, model, encoding)
        for check in checks
        if check.capability is None or model.offers(check.capability)
    ]


def same_again(model: LanguageModel, encoding: Encoding) -> SelfCheckFinding:
    """Whether two equal evaluations agree; works for any model."""
    if isinstance(model, Classifier):
        return _finding(_SelfCheck(_SAME, None, _repeated), model, encoding)
    whole, removal = encoding.whole, model.removals[0]
    with drawing():
        once, twice = (torch.cat(model.masked_logits(encoding, whole, removal)).double() for _ in range(2))
    largest = float((once - twice).abs().max())
    same = largest <= 1e-5 * max(1.0, float(once.abs().max()))
    return SelfCheckFinding(_SAME, same, "yes" if same else f"an output differs by {largest:.1e}")


def disproved(findings: list[SelfCheckFinding]) -> frozenset[type[Capability]]:
    """Capabilities that the adapter claims and that a check refutes."""
    return frozenset(
        finding.capability for finding in findings if finding.capability is not None and not finding.passed
    )


def _finding(check: _SelfCheck, model: Classifier, encoding: Encoding) -> SelfCheckFinding:
    try:
        checked = check.run(model, encoding)
    except (RaisonError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
        # The check exists to find models that fail here; the model's own error gives the reason.
        checked = Checked(False, f"{type(error).__name__}: {first_line(error)}")
    return SelfCheckFinding(check.name, checked.passed, checked.detail, check.capability)


def _tolerance(model: Classifier) -> float:
    if "quantised" in model.withheld.get(WordEmbeddings, ""):
        # Inputs are rounded to eight bits together with those of other texts in the batch: such a model's output
        # changes by 0.03 to 0.11 with another text in the batch, and by up to 0.15 with padding (four tiny families).
        return 0.2
    half = next(model.core.parameters()).dtype in (torch.float16, torch.bfloat16)
    return 5e-2 if half else 1e-4


def _difference(model: Classifier, first: torch.Tensor, second: torch.Tensor) -> Checked:
    largest = (first.float() - second.float()).abs().max().item()
    return Checked(largest <= _tolerance(model), f"largest difference of logits {largest:.1e}")


def _logits(model: Classifier, encoding: Encoding) -> torch.Tensor:
    with torch.no_grad():
        return model.ask(Passes).logits(encoding).cpu()


def _plain(model: Classifier, encoding: Encoding) -> Checked:
    arguments = {"input_ids": encoding.input_ids.to(model.device)}
    if model.passes.network.takes_types:
        arguments["token_type_ids"] = encoding.type_ids.to(model.device)
    logits = _logits(model, encoding)
    with torch.no_grad(), model.quiet():
        if model.passes.reads is not None:
            return _difference(model, logits, _read_alone(model, encoding, model.passes.reads))
        if isinstance(model.readout, WordReadout):
            return _difference(model, logits, _answers(model, model.readout, arguments["input_ids"]))
        outputs = model.model(**arguments)
        if encoding.reading is not None:
            batch = model.passes.batch_of(encoding)
            return _difference(model, logits, model.head.logits(model.head.parts(outputs, batch), batch).cpu())
        if encoding.spans is not None:
            (start, end) = encoding.spans[0].tolist()
            plain = (outputs.start_logits[0, start] + outputs.end_logits[0, end])[None, None].cpu()
            return _difference(model, logits[:, :1], plain)
        plain = class_logits(outputs)[:, None]
        plain = model.head.logits(plain, model.passes.batch_of(encoding)).cpu()
    return _difference(model, logits[:, -plain.shape[1] :], plain)


def _read_alone(model: Classifier, encoding: Encoding, reads: Reads) -> torch.Tensor:
    """The number from one pass of the plain model for each read, without padding."""

    def read(batch: TokenBatch, _embeds: object) -> torch.Tensor:
        return torch.cat([alone(batch.select([row])) for row in range(len(batch.ids))])

    def alone(batch: TokenBatch) -> torch.Tensor:
        arguments = {"input_ids": batch.ids.to(model.device)}
        if model.passes.network.takes_types:
            arguments["token_type_ids"] = batch.type_ids.to(model.device)
        return model.head.logits(model.head.parts(model.model(**arguments), batch), batch)

    return reads.logits(model.passes.batch_of(encoding), None, read).cpu()


def _answers(model: Classifier, readout: WordReadout, ids: torch.Tensor) -> torch.Tensor:
    """Label words scored by full passes of the plain model, one per label."""
    scores = []
    for label in readout.label_ids:
        whole = torch.cat([ids[0], ids.new_tensor(label)])
        steps = model.model(input_ids=whole[None]).logits[0, -len(label) - 1 : -1].float().cpu()
        # If every label is one token, the score is the logit itself.
        shares = steps if all(len(other) == 1 for other in readout.label_ids) else steps.log_softmax(-1)
        scores.append(shares[range(len(label)), list(label)].sum())
    stacked = torch.stack(scores)[None]
    return stacked if readout.prior is None else stacked - readout.prior


def _repeated(model: Classifier, encoding: Encoding) -> Checked:
    largest = change(model, encoding)
    detail = f"a logit differs by {largest:.1e}: dropout or sampling inside its pass" if largest else "yes"
    return Checked(largest == 0, detail)


def _padding(model: Classifier, encoding: Encoding) -> Checked:
    text = encoding.texts[0]
    twice = f"{text} {text}" if isinstance(text, str) else (*text[:-1], f"{text[-1]} {text[-1]}")
    longer = model.encode([text, twice], encoding.unit)
    return _difference(model, _logits(model, longer)[:1], _logits(model, encoding))


def _kept(model: Classifier, encoding: Encoding) -> Checked:
    plain = _logits(model, encoding)
    logits = [model.masked_logits(encoding, encoding.whole, removal)[0] for removal in model.removals]
    return _difference(model, torch.cat(logits), plain.expand(len(logits), -1))


def _embeds(model: Classifier, encoding: Encoding) -> Checked:
    with torch.no_grad():
        given = model.ask(Passes).logits(encoding, model.ask(WordEmbeddings).embed(encoding)).cpu()
    return _difference(model, given, _logits(model, encoding))


def _gradients(model: Classifier, encoding: Encoding) -> Checked:
    embeds = model.ask(WordEmbeddings).embed(encoding)
    target = Target(torch.zeros(1, dtype=torch.long), None, "logit", model.multi_label)
    one = torch.ones(1)
    sums, _ = model.ask(WordEmbeddings).path_gradients(encoding, lambda _text, _positions: embeds, one, one, target)
    norms = sums[0].norm(dim=-1)
    reached = int((norms > 0).sum())
    # Some tokens may have none: a sliding window may hide the beginning of the text from the last token.
    return Checked(reached > 0, f"{reached} of {len(norms)} tokens have a gradient")


def _rules(model: Classifier, encoding: Encoding) -> Checked:
    target = Target(torch.zeros(1, dtype=torch.long), None, "logit", model.multi_label)
    rules = Relevance(attention="constant", activations="gradient", gates="gradient")
    _, values = model.ask(BackwardRules).ruled_gradients(
        encoding, model.ask(WordEmbeddings).embed(encoding), rules, target
    )
    return _difference(model, values[:, 0], _logits(model, encoding)[:, 0])


def _anatomy(model: Classifier, encoding: Encoding) -> Checked:
    # The first call compares internally and raises on a difference.
    trace, *_ = model.ask(Anatomy).traces(encoding)
    return Checked(True, f"{len(trace.states) - 1} layers rebuilt")


def _steps(model: Classifier, encoding: Encoding) -> Checked:
    units, unit_ids, ids = encoding.unit_counts[0], encoding.unit_ids[0], encoding.input_ids[0]
    [[stepwise]] = model.ask(StepLogits).step_logits(encoding, encoding.whole, model.removals[0])
    after = int(encoding.scored[0].nonzero()[-1, 0]) + 1
    shorter = []
    for unit in range(units):
        end = int((unit_ids == unit).nonzero()[-1, 0]) + 1
        shorter.append(_logits(model, _of_tokens(encoding, torch.cat([ids[:end], ids[after:]]))))
    return _difference(model, stepwise, torch.cat(shorter))


def _of_tokens(encoding: Encoding, ids: torch.Tensor) -> Encoding:
    """An encoding of these tokens alone, without units."""
    return replace(
        encoding,
        input_ids=ids[None],
        attention_mask=torch.ones(1, len(ids), dtype=torch.bool),
        type_ids=torch.zeros(1, len(ids), dtype=torch.long),
        offsets=torch.zeros(1, len(ids), 2, dtype=torch.long),
        unit_ids=torch.full((1, len(ids)), -1),
    )


def _tap(model: Classifier, encoding: Encoding) -> Checked:
    with torch.no_grad(), model.ask(ReadableAttention).tap():
        tapped = model.ask(Passes).logits(encoding).cpu()
    return _difference(model, tapped, _logits(model, encoding))


def _rows(model: Classifier, encoding: Encoding) -> Checked:
    with torch.no_grad(), model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(encoding)
    sums = torch.cat([layer.float().sum(-1).flatten() for layer in tap.probabilities.values()])
    largest = (sums - 1).abs().max().item()
    detail = f"{len(tap.probabilities)} layers, largest deviation {largest:.1e}"
    return Checked(largest <= _tolerance(model), detail)


def _layers(model: Classifier, encoding: Encoding) -> Checked:
    attention = model.ask(AttentionLayers)
    read = int((attention.positions(encoding).rows > 0).sum())
    with torch.no_grad(), attention.recorded() as records:
        recorded = model.ask(Passes).logits(encoding).cpu()
    same = _difference(model, recorded, _logits(model, encoding))
    largest = max((block.probabilities.float().sum(-1) - 1).abs().max().item() for block in records.blocks)
    known = f"{len(records.blocks)} layers, {read} of their last positions read, rows sum to 1 within {largest:.1e}"
    return Checked(same.passed and largest <= _tolerance(model), f"{same.detail}; {known}")


def _put_in(model: Classifier, encoding: Encoding) -> Checked:
    target = Target(torch.zeros(1, dtype=torch.long), None, "logit", model.multi_label)
    values, steepest = [], 0.0
    for site in model.ask(ReplaceableAttention).attention_sites(encoding, lambda total: sorted({0, total - 1})):
        for slopes in site.slopes(lambda _points, probabilities=site.probabilities: probabilities[None], 1, target):  # type: ignore[misc]
            values.append(slopes.values)
            steepest = max(steepest, slopes.gradients.abs().max().item())
    difference = _difference(model, torch.cat(values).cpu(), _logits(model, encoding)[:, 0])
    return Checked(difference.passed and steepest > 0, f"{difference.detail}, largest gradient {steepest:.1e}")


def _pooling(model: Classifier, encoding: Encoding) -> Checked:
    rows = model.ask(ReadableAttention).prediction_rows(encoding)[0]
    where = rows.nonzero()[:, 0].tolist()
    named = {(0,): "the first token", (encoding.lengths[0] - 1,): "the last token"}
    return Checked(True, named.get(tuple(where), f"the mean of {len(where)} tokens"))
