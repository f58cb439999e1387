"""SmoothGrad: the mean gradient around the text."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import PathEmbeddings, Points
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.integration.embedding_noise import Noise, NoiseScale, gaussian, spreads
from raison.integration.repeated_texts import own_embeddings

Score = Literal["gradient", "input_x_gradient"]


@dataclass(frozen=True)
class SmoothGrad(Method):
    """How strongly the target reacts to a token's word embedding, averaged over random points near the text.

    g_t = 1/N sum_{i=1}^N d v(x + noise_i) / d e_t with noise_i ~ N(0, sigma^2) (Smilkov et al. 2017, section 3), with v
    the target, x the word embeddings and N = `samples`. score_t is the L2 norm of g_t ("gradient", never negative, in
    target per embedding length) or x_t . g_t ("input_x_gradient", signed, in units of the target). Returns (batch,
    tokens).

    sigma = `noise` times the standard deviation of all features of the word embeddings of the text's units
    (scale="deviation") or times their range, largest minus smallest (scale="range"). Special and prompt tokens get no
    noise, because they are not explained. A text's draws are its own, the same in every batch.

    N forward and N backward passes.

    Guarantees no sum, and no sign ("gradient"). Scores depend on the seed, less so with more samples.

    Differences from the paper: it takes 0.1 to 0.2 of the range, which suits pixels. The range of a text's word
    embeddings is set by a few extreme features: with 0.15 of it, the noise is twice as long as a word's embedding
    (measured on MiniLM), and no word is recognisable. The default is the same share of the deviation, with which the
    noise has that share of an embedding's length. Features become one score by a norm, as for saliency; captum's
    NoiseTunnel over Saliency averages absolute values instead, unless told otherwise.

    Reference: smilkov2017smoothgrad.
    """

    samples: Annotated[int, Setting(least=1)] = 50
    noise: Noise = 0.15
    scale: NoiseScale = "deviation"
    score: Score = "gradient"

    reference: ClassVar[str] = "smilkov2017smoothgrad"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.RANDOM})
    passes: ClassVar[str] = "samples forward + samples backward"

    @property
    def signed(self) -> bool:
        return self.score == "input_x_gradient"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, embeds = problem.encoding, own_embeddings(problem)
        seeds = [int(rng.integers(2**63)) for rng in rngs]
        sigmas = [self.noise * size for size in spreads(encoding, embeds, self.scale)]

        def around(text: int, numbers: Points) -> PathEmbeddings:
            noise = [gaussian(seeds[text], int(number), encoding, text, embeds.shape[-1]) for number in numbers]
            return embeds[text] + sigmas[text] * torch.stack(noise).to(embeds)

        # Positions on this path are the samples' numbers.
        numbers = torch.arange(self.samples, dtype=torch.float64)
        gradients, _ = problem.path_gradients(around, numbers, torch.full_like(numbers, 1 / self.samples))
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        for text, gradient in enumerate(gradients):
            features, mean = embeds[text, : len(gradient)].cpu().double(), gradient.double()
            token_scores = mean.norm(dim=-1) if self.score == "gradient" else (features * mean).sum(-1)
            scores[text, : len(gradient)] = token_scores
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=self.samples, backwards=self.samples)
