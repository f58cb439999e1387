"""Weights in another form: a GGUF file as a model, or as a folder that loads in a second; a BERT as an ELECTRA."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.models.stack.modes import drawing, quiet


def read_gguf(file: Path, dtype: object = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The causal language model of a GGUF file, weights dequantised, and its tokenizer. Raises LoadError.

    In single precision unless another one is named: memory holds 4 bytes per weight, whatever the file has.
    """
    # Only now: few models come in such a file.
    import torch
    import transformers
    from transformers import AutoModelForCausalLM

    from raison.models.loading.pretrained import read_tokenizer, read_whole

    # Where the class exists, weights stay packed unless it says otherwise; before it, they were always unpacked.
    unpacking = getattr(transformers, "GgufConfig", None)
    settings = {} if unpacking is None else {"quantization_config": unpacking(dequantize=True)}
    named = {"gguf_file": file.name}
    tokenizer = read_tokenizer(file.parent, **named)
    own = dtype if isinstance(dtype, torch.dtype) else torch.float32
    return read_whole(AutoModelForCausalLM, file.parent, dtype=own, **named, **settings), tokenizer


def convert_gguf(file: Path, out: Path) -> Path:
    """Write the model and tokenizer of a GGUF file to the folder `out`, weights dequantised, in float16 safetensors.

    Takes about 25 seconds for 135 million parameters. Nothing is learned from the rounding to float16 that the
    quantisation had not lost before.
    """
    model, tokenizer = read_gguf(file)
    model = model.half()
    # What the file calls the model is no name that anything could be loaded by.
    model.config.name_or_path = ""
    with quiet():
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    return out


def bert_to_electra(source: Path, out: Path, files: Sequence[str]) -> Path:
    """Write an ELECTRA with a BERT's embeddings and layers to the folder `out`: the hidden states are the same.

    The two differ in their heads alone, and in a pooler, which ELECTRA has not. `files` are copied where they are not
    the model's own.
    """
    # Only now: a conversion is made once per machine.
    import torch
    from transformers import AutoModel, ElectraConfig, ElectraModel

    from raison.models.loading.pretrained import read_config, read_whole

    known = read_config(source).to_dict()
    shared = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"]
    shared += ["max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id", "hidden_act"]
    config = ElectraConfig(**{name: known[name] for name in shared}, embedding_size=known["hidden_size"])
    with quiet(), drawing():
        bert = read_whole(AutoModel, source, dtype=torch.float32)
        model = ElectraModel(config)
        state = {name: value for name, value in bert.state_dict().items() if not name.startswith("pooler.")}
        model.load_state_dict(state)
        model.save_pretrained(out)
    for name in files:
        if not (out / name).exists():
            shutil.copyfile(source / name, out / name)
    return out
