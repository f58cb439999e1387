"""What the training of answers from sources needs: a tiny language model that chats, and invented articles."""

import json
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from raison.data.sourced.articles import HELD_OUT
from tests.tiny import build_language_model

TEMPLATE = "{% for message in messages %}{{ message['role'] }} : {{ message['content'] }}\n{% endfor %}assistant :\n"


def build_chatting() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new llama with a chat template that reads long texts, and its tokenizer."""
    model, tokenizer = build_language_model("llama")
    tokenizer.chat_template = TEMPLATE
    # Its rotations know no longest text.
    model.config.max_position_embeddings = tokenizer.model_max_length = 4096
    return model, tokenizer


def write_articles(folder: Path) -> Path:
    """SQuAD's files in `folder`: two articles to learn from, and one of those that tests see."""
    found = [
        {"title": title, "paragraphs": [_paragraph(title, number) for number in range(6)]}
        for title in ("Seas", "Bays", HELD_OUT[0])
    ]
    folder.mkdir(parents=True)
    (folder / "squad_v1.1_trainpart_dev.json").write_text(json.dumps({"data": found}), encoding="utf-8")
    (folder / "xquad.en.json").write_text(json.dumps({"data": found[:1]}), encoding="utf-8")
    return folder


def _paragraph(title: str, number: int) -> dict[str, object]:
    text = f"the {title} sea is old. captain {number} saw it. it was {number} miles wide."
    answer = {"text": f"captain {number}", "answer_start": text.index("captain")}
    return {"context": text, "qas": [{"question": f"who saw it {number}?", "answers": [answer]}]}
