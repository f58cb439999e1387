"""Whether a tokenizer belongs to a model: every token of a text needs a row of the model's embedding table."""

from torch import nn
from transformers import PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from raison.core.errors import LoadError
from raison.models.stack.transformer import embedding_tables


def check_vocabulary(model: PreTrainedModel, tokenizer: Tokenizer, name: str) -> None:
    """Raise LoadError for a tokenizer with tokens that the model has no embedding for, UnsupportedError for a model
    without a table.

    Special tokens that stand for nothing in texts (neither padding nor a mask, say) may lack one.
    """
    # An encoder reads texts; a decoder's own table may be that of another language.
    table = embedding_tables(model)[0]
    if not isinstance(table, nn.Embedding) or table.num_embeddings >= len(tokenizer):
        return
    added = tokenizer.added_tokens_decoder
    used = {number for number, token in added.items() if not token.special} | {*tokenizer.all_special_ids}
    highest = max([tokenizer.vocab_size - 1, *used - {None}])
    if highest >= table.num_embeddings:
        raise LoadError(
            f"the tokenizer of '{name}' has tokens up to number {highest:,}, and the model's embedding table has "
            f"{table.num_embeddings:,} rows: give the model's own tokenizer, or call "
            "model.resize_token_embeddings(len(tokenizer)) first."
        )
