"""The catalogue of methods: one file is one method. `raison.methods.CamelCase` is the class in camel_case.py."""

from typing import TYPE_CHECKING

from raison.core.method import Method
from raison.core.registry import Catalogue
from raison.core.stated_facts import method_fault

if TYPE_CHECKING:
    # For type checkers, which do not run __getattr__: one line for each file, as a test checks.
    from raison.methods.alti import Alti as Alti
    from raison.methods.aml import Aml as Aml
    from raison.methods.amortized_shap import AmortizedShap as AmortizedShap
    from raison.methods.at2 import At2 as At2
    from raison.methods.attention_average import AttentionAverage as AttentionAverage
    from raison.methods.attention_flow import AttentionFlow as AttentionFlow
    from raison.methods.attention_last import AttentionLast as AttentionLast
    from raison.methods.attention_rollout import AttentionRollout as AttentionRollout
    from raison.methods.attn_lrp import AttnLrp as AttnLrp
    from raison.methods.auto import Auto as Auto
    from raison.methods.coarse_to_fine import CoarseToFine as CoarseToFine
    from raison.methods.context_cite import ContextCite as ContextCite
    from raison.methods.decompx import Decompx as Decompx
    from raison.methods.deep_lift import DeepLift as DeepLift
    from raison.methods.discretized_integrated_gradients import (
        DiscretizedIntegratedGradients as DiscretizedIntegratedGradients,
    )
    from raison.methods.ensemble import Ensemble as Ensemble
    from raison.methods.generic_attention import GenericAttention as GenericAttention
    from raison.methods.globenc import Globenc as Globenc
    from raison.methods.gradient_shap import GradientShap as GradientShap
    from raison.methods.hierarchical_occlusion import HierarchicalOcclusion as HierarchicalOcclusion
    from raison.methods.input_x_gradient import InputXGradient as InputXGradient
    from raison.methods.integrated_gradients import IntegratedGradients as IntegratedGradients
    from raison.methods.ivra import Ivra as Ivra
    from raison.methods.kernel_shap import KernelShap as KernelShap
    from raison.methods.lime import Lime as Lime
    from raison.methods.lrp_transformer import LrpTransformer as LrpTransformer
    from raison.methods.mp_pi import MpPi as MpPi
    from raison.methods.occlusion import Occlusion as Occlusion
    from raison.methods.partition_shap import PartitionShap as PartitionShap
    from raison.methods.random import Random as Random
    from raison.methods.reagent import Reagent as Reagent
    from raison.methods.resampled import Resampled as Resampled
    from raison.methods.rpi import Rpi as Rpi
    from raison.methods.rpi_g import RpiG as RpiG
    from raison.methods.saliency import Saliency as Saliency
    from raison.methods.self_explanation import SelfExplanation as SelfExplanation
    from raison.methods.sequential_integrated_gradients import (
        SequentialIntegratedGradients as SequentialIntegratedGradients,
    )
    from raison.methods.shapley_exact import ShapleyExact as ShapleyExact
    from raison.methods.shapley_sampling import ShapleySampling as ShapleySampling
    from raison.methods.smat import Smat as Smat
    from raison.methods.smooth_grad import SmoothGrad as SmoothGrad
    from raison.methods.solvex import Solvex as Solvex
    from raison.methods.sp_pi import SpPi as SpPi
    from raison.methods.value_zeroing import ValueZeroing as ValueZeroing

CATALOGUE: Catalogue[Method] = Catalogue(__name__, "method", Method, fault=method_fault)


def __getattr__(name: str) -> type[Method]:
    classes = CATALOGUE.classes()
    if name not in classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(classes)}")
    return CATALOGUE.get(classes[name])


def __dir__() -> list[str]:
    return sorted([*CATALOGUE.classes(), "CATALOGUE"])
