"""raison train: one command for each kind of training."""

import typer

from raison.cli.interruption import interruptible
from raison.cli.train.aml import aml
from raison.cli.train.amortized_shap import amortized_shap
from raison.cli.train.answers import answers
from raison.cli.train.at2 import at2
from raison.cli.train.classifier import classifier
from raison.cli.train.ivra import ivra
from raison.cli.train.scratch import scratch

app = typer.Typer(
    help="Train a classifier, an explainer, or a language model that answers from sources.", no_args_is_help=True
)

for command in (aml, amortized_shap, answers, at2, ivra, scratch, classifier):
    app.command()(interruptible("folder")(command))
