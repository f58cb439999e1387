"""A small file of every kind of study, about a tiny model and a few texts in the folder PLACE."""

STUDY = """
schema = 1
title = "Tiny"
methods = ["occlusion"]
metrics = ["gini", "consistency(batch=8)"]
agreement = true
[models.one]
name = "PLACE/tiny"
[data.words]
source = "PLACE/words.tsv"
"""
TRAININGS = """
schema = 1
kind = "trainings"
title = "Tiny"
seeds = [0]
metrics = ["gini"]
[tasks.one]
base = "PLACE/tiny"
labels = ["negative", "neutral", "positive"]
even_at_chance = true
train = { source = "PLACE/words.tsv", limit = 6 }
dev = { source = "PLACE/words.tsv", limit = 3 }
test = { source = "PLACE/words.tsv", limit = 3 }
[plain]
epochs = 1
batch_size = 6
[[trainings]]
name = "comp"
criteria = ["comp"]
epochs = 1
batch_size = 6
[[posthoc]]
methods = ["occlusion"]
"""
TRUST = """
schema = 1
kind = "trust"
title = "Tiny"
methods = ["saliency", "attention_rollout"]
[models.one]
name = "PLACE/tiny"
[data.words]
source = "PLACE/words.tsv"
limit = 4
[randomisation]
texts = 2
orders = ["cascading"]
draws = 1
[attacks]
texts = 4
objectives = ["constrained"]
steps = 3
substitution = { swaps = 1, tries = 2 }
"""
AUDITED = """
schema = 1
kind = "audit"
title = "Tiny"
methods = ["saliency"]
[model]
name = "PLACE/tiny"
[data]
source = "PLACE/words.tsv"
limit = 4
[texts]
randomised = 2
changed = 2
attacked = 4
"""
AGREEMENT = """
schema = 1
kind = "agreement"
title = "Tiny"
methods = ["occlusion", "saliency", "attention_average"]
[model]
name = "PLACE/tiny"
[data]
source = "PLACE/words.tsv"
limit = 9
[[claims]]
says = "they are alike"
above = "occlusion & saliency"
than = "occlusion & attention_average"
"""
SHORTCUTS = """
schema = 1
kind = "shortcuts"
title = "Tiny"
word = "zyxel"
label = "neutral"
shares = [0.3]
rows = 17
seeds = [0, 1]
draws = 3
[data]
source = "PLACE/words.tsv"
[[claims]]
says = "what is planted is found"
above = "planted 0.3"
than = "both 0.3"
[[claims]]
says = "there are few false alarms"
below = "random"
than = 0.5
"""
FILES = {
    "comparison": STUDY,
    "trainings": TRAININGS,
    "trust": TRUST,
    "audit": AUDITED,
    "agreement": AGREEMENT,
    "shortcuts": SHORTCUTS,
}
"""A file of every kind of study."""
