"""A notebook as marimo runs it: the widget, and a list of explanations, of a function that counts words."""

import marimo

app = marimo.App()


@app.cell
def _():
    import numpy as np

    import raison

    def by_words(texts):
        sums = np.array([text.count("good") - text.count("bad") for text in texts])
        yes = 1 / (1 + np.exp(-sums))
        return np.stack([1 - yes, yes], axis=1)

    model = raison.load(by_words, classes=["no", "yes"])
    raison.Widget(model, "a good film", method="occlusion")
    return model, raison


@app.cell
def _(model, raison):
    from raison.web.component.listing import Listing

    texts = ["good one", "bad one", "good and bad", "a good film", "one", "two"]
    Listing(raison.explain(model, texts, "occlusion", progress=False))
