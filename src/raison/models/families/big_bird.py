"""BigBird: absolute positions; the head reads the first token ([CLS]).

Texts up to a length (704 tokens as released) have full attention, and longer ones block-sparse attention. The latter
pads texts to whole blocks and treats the last block differently, so padding changes the output. Here such models have
full attention, for texts up to that length.
"""

from dataclasses import replace

from transformers import PreTrainedConfig

from raison.models.families import Family, bert

PARTS = replace(bert.PARTS, head=("classifier.dense", "gelu", "classifier.out_proj"))
FAMILY = Family(model_types=("big_bird",), pools="first", parts=PARTS)


def configure(config: PreTrainedConfig) -> Family:
    """The head has the same activation as the layers. The length is that of BigBirdModel.forward."""
    parts = replace(PARTS, head=("classifier.dense", config.hidden_act, "classifier.out_proj"))
    sparse = config.attention_type == "block_sparse"
    longest = (5 + 2 * config.num_random_blocks) * config.block_size
    return replace(FAMILY, parts=parts, longest=longest if sparse else None)
