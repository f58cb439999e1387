"""The origins of a trial's records: the model, the method with its files, the text, and how it is tested."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from raison.core.inputs.parts import Given, written
from raison.jobs.identity import FILES, Identity, digest_of
from raison.jobs.origins import Origins
from raison.trust.records import AttackKey, SimilarityKey
from raison.trust.results import ATTACKS, SIMILARITIES, SUBSTITUTIONS, TrustRun
from raison.trust.trial import TrustTrial

_VARIED = ("orders", "draws")
"""Settings of a randomisation that only say how many records there are."""


def origins_of(trial: TrustTrial, texts: Sequence[Given], identity: Identity, run: TrustRun) -> Mapping[str, Origins]:
    """By the store's name, the origins of all records of a finished run, under the versions in `identity`."""
    explained = [
        digest_of([written(text), asdict(trial.settings.of_texts([number]))]) for number, text in enumerate(texts)
    ]
    of_method = {
        method: digest_of([method, {part: one for part, one in identity.items() if _concerns(part, method)}])
        for method in trial.methods
    }

    def origin(tested: Any, key: SimilarityKey | AttackKey) -> str:
        place = [value for name, value in key._asdict().items() if name not in ("method", "text")]
        return digest_of([of_method[key.method], explained[key.text], tested, place])

    randomised, attacked = _randomisation(trial), _attacks(trial)
    attacks = {key: origin(attacked[key.attack == "substitution", key.objective], key) for key in run.wanted_attacks()}
    replaced = {(key.method, key.text): digest for key, digest in attacks.items() if key.attack == "substitution"}
    return {
        SIMILARITIES: Origins(
            SimilarityKey._fields, {key: origin(randomised, key) for key in run.wanted_similarities()}
        ),
        ATTACKS: Origins(AttackKey._fields, attacks),
        SUBSTITUTIONS: Origins(("method", "text"), replaced),
    }


def _concerns(part: str, method: str) -> bool:
    """Whether a part of the identity concerns this method; another method's file does not."""
    return not part.startswith(FILES) or part == f"{FILES}{method}"


def _randomisation(trial: TrustTrial) -> dict[str, Any] | None:
    if trial.randomisation is None:
        return None
    return {name: value for name, value in asdict(trial.randomisation.plan).items() if name not in _VARIED}


def _attacks(trial: TrustTrial) -> dict[tuple[bool, str], dict[str, Any]]:
    """The settings of each attack, by whether words are replaced, and by the objective."""
    if trial.attacks is None:
        return {}
    plans = {(False, plan.objective): asdict(plan) for plan in trial.attacks.plans}
    if trial.attacks.substitution is not None:
        plans[True, "constrained"] = asdict(trial.attacks.substitution)
    return plans
