"""The catalogue of metrics: one file is one metric. `raison.metrics.CamelCase` is the class in camel_case.py."""

from typing import TYPE_CHECKING

from raison.core.metric import GroupMetric, Metric
from raison.core.registry import Catalogue
from raison.core.stated_facts import metric_fault

if TYPE_CHECKING:
    # For type checkers, which do not run __getattr__: one line for each file, as a test checks.
    from raison.metrics.activation_auc import ActivationAuc as ActivationAuc
    from raison.metrics.aopc_comprehensiveness import AopcComprehensiveness as AopcComprehensiveness
    from raison.metrics.aopc_sufficiency import AopcSufficiency as AopcSufficiency
    from raison.metrics.auprc import Auprc as Auprc
    from raison.metrics.auroc import Auroc as Auroc
    from raison.metrics.completeness_error import CompletenessError as CompletenessError
    from raison.metrics.comprehensiveness import Comprehensiveness as Comprehensiveness
    from raison.metrics.consistency import Consistency as Consistency
    from raison.metrics.deletion_auc import DeletionAuc as DeletionAuc
    from raison.metrics.entropy import Entropy as Entropy
    from raison.metrics.gini import Gini as Gini
    from raison.metrics.ground_truth_overlap import GroundTruthOverlap as GroundTruthOverlap
    from raison.metrics.harmless_change import HarmlessChange as HarmlessChange
    from raison.metrics.important_token_share import ImportantTokenShare as ImportantTokenShare
    from raison.metrics.infidelity import Infidelity as Infidelity
    from raison.metrics.insertion_auc import InsertionAuc as InsertionAuc
    from raison.metrics.inverse_activation_auc import InverseActivationAuc as InverseActivationAuc
    from raison.metrics.iou_f1 import IouF1 as IouF1
    from raison.metrics.leave_one_out_correlation import LeaveOneOutCorrelation as LeaveOneOutCorrelation
    from raison.metrics.linear_datamodeling_score import LinearDatamodelingScore as LinearDatamodelingScore
    from raison.metrics.log_odds import LogOdds as LogOdds
    from raison.metrics.log_probability_drop import LogProbabilityDrop as LogProbabilityDrop
    from raison.metrics.max_sensitivity import MaxSensitivity as MaxSensitivity
    from raison.metrics.mean_rank import MeanRank as MeanRank
    from raison.metrics.mean_rank_percentage import MeanRankPercentage as MeanRankPercentage
    from raison.metrics.monotonicity import Monotonicity as Monotonicity
    from raison.metrics.precision_at_top import PrecisionAtTop as PrecisionAtTop
    from raison.metrics.recall_at_top import RecallAtTop as RecallAtTop
    from raison.metrics.simulatability import Simulatability as Simulatability
    from raison.metrics.sufficiency import Sufficiency as Sufficiency
    from raison.metrics.token_f1 import TokenF1 as TokenF1

CATALOGUE: Catalogue[Metric | GroupMetric] = Catalogue(__name__, "metric", Metric, GroupMetric, fault=metric_fault)


def __getattr__(name: str) -> type[Metric | GroupMetric]:
    classes = CATALOGUE.classes()
    if name not in classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(classes)}")
    return CATALOGUE.get(classes[name])


def __dir__() -> list[str]:
    return sorted([*CATALOGUE.classes(), "CATALOGUE"])
