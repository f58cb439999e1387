"""A study of two tiny models, as a file, and changed."""

from pathlib import Path

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = [" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(12)]
TOGETHER = 8
"""Texts of a run that are written together, so that some are written after others."""

STUDY = """
schema = 1
title = "Two tiny models"
methods = ["occlusion", "kernel_shap(samples=12)", "random(draws=3)"]
metrics = ["auroc", "comprehensiveness", "token_f1(average='micro')", "consistency(batch=8)"]
select = ["comprehensiveness"]
agreement = true

[settings]
seeds = [0, 1]
target = "label"

[models.bert]
name = "bert"

[models.electra]
name = "electra"
labels = ["negative", "so so", "positive"]

[data.words]
source = "words.jsonl"

[[claims]]
says = "occlusion is more faithful than random"
metric = "comprehensiveness"
above = "occlusion"
than = "random"

[[claims]]
says = "no random map agrees with people"
metric = "auroc"
below = "random"
than = 0.99
run = "bert--words"
"""


ALONE = ('\n[models.electra]\nname = "electra"\nlabels = ["negative", "so so", "positive"]\n', "")
"""Half the work, where it does not matter that there are several models."""


def changed(place: Path, *changes: tuple[str, str]) -> str:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (place / "changed.toml").write_text(text)
    return "changed.toml"
