"""Gradient methods on what encoder-decoders write, against captum over both stacks' word embeddings."""

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients

import raison
from tests.reference.test_generation import per_unit
from tests.reference.test_generation_encoder_decoder import (
    OUTPUT,
    PROMPT,
    build,
    embeds_of,
    encoder_scale,
    ids_of,
    owners_in,
)
from tests.tiny import WRITERS

STEPS = 12


@pytest.mark.parametrize(
    ("call", "make", "settings"),
    [
        ("input_x_gradient", InputXGradient, {}),
        (
            f"integrated_gradients(steps={STEPS}, baseline='zero')",
            IntegratedGradients,
            {"n_steps": STEPS, "method": "gausslegendre"},
        ),
    ],
)
@pytest.mark.parametrize("name", WRITERS)
def test_scores_of_text_and_earlier_tokens(name, call, make, settings):
    generator = build(name)
    source, start, output, own = ids_of(generator)
    found = raison.explain(generator, PROMPT, call, output=OUTPUT, unit="token", earlier=True, of="probability")
    for number, token in enumerate(output):
        embeds = [one[None] for one in embeds_of(generator, source, start + output[:number])]

        def probability(text, written, token=token):
            given = {"inputs_embeds": encoder_scale(generator) * text, "decoder_inputs_embeds": written}
            logits = generator.model(**given).logits
            return logits[:, -1].softmax(-1)[:, token]

        if settings:
            # What is no unit stays as it is.
            baselines = [one.clone() for one in embeds]
            baselines[0][:, list(own)] = 0
            baselines[1][:, len(start) :] = 0
            settings = settings | {"baselines": tuple(baselines)}
        text, written = make(probability).attribute(tuple(embeds), **settings)
        expected = [
            *per_unit(text[0].sum(-1)[list(own)].double(), owners_in(generator, found)),
            *written[0].sum(-1)[len(start) :].tolist(),
        ]
        np.testing.assert_allclose(found.scores[number], expected, rtol=1e-3, atol=1e-6)
        assert torch.tensor(expected).abs().max() > 0
