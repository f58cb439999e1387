"""Conversion of weights: a GGUF file into a model or a folder that loads quickly; a BERT into an ELECTRA."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import LoadError
from raison.models.stack.eval_mode import drawing, quiet


def read_gguf(file: Path, dtype: object = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The causal language model of a GGUF file, weights dequantised, and its tokenizer. Raises LoadError.

    In single precision by default: 4 bytes of memory per weight, whatever the file uses.
    """
    # Imported here: few models come as GGUF.
    import torch
    import transformers
    from transformers import AutoModelForCausalLM

    from raison.models.loading.pretrained import read_tokenizer, read_whole

    # Versions with this class keep weights packed by default; older ones always unpack them.
    unpacking = getattr(transformers, "GgufConfig", None)
    settings = {} if unpacking is None else {"quantization_config": unpacking(dequantize=True)}
    named = {"gguf_file": file.name}
    tokenizer = read_tokenizer(file.parent, **named)
    precision = dtype if isinstance(dtype, torch.dtype) else torch.float32
    try:
        model = read_whole(AutoModelForCausalLM, file.parent, dtype=precision, **named, **settings)
    except LoadError as error:
        if AutoModelForCausalLM.__name__ not in str(error.__cause__):
            raise
        raise LoadError(
            f"'{file}' does not contain a causal language model, the only kind that is read from GGUF: give the folder "
            "or the Hub id of its safetensors."
        ) from None
    return model, tokenizer


def convert_gguf(file: Path, out: Path) -> Path:
    """Write the model and tokenizer of a GGUF file to the folder `out`, weights dequantised, in float16 safetensors.

    Takes about 25 seconds for 135 million parameters. Rounding to float16 loses less than the quantisation already did.
    """
    model, tokenizer = read_gguf(file)
    model = model.half()
    # The model name in the file cannot be used for loading.
    model.config.name_or_path = ""
    with quiet():
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    return out


def bert_to_electra(source: Path, out: Path, files: Sequence[str]) -> Path:
    """Write an ELECTRA with a BERT's embeddings and layers to the folder `out`: the hidden states are the same.

    The two differ only in their heads and in the pooler, which ELECTRA lacks. `files` are copied where they are not
    the model's own.
    """
    # Imported here: a conversion runs once per machine.
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
