"""Other wordings of texts, as a model reads them."""

from collections.abc import Sequence

from raison.core.capabilities.other_wordings import OtherWordings
from raison.core.inputs.parts import Given, plain
from raison.core.metric import Rewording
from raison.core.model import LanguageModel


def worded(model: LanguageModel, rewordings: Sequence[Rewording]) -> tuple[LanguageModel, dict[Rewording, Given]]:
    """The model that reads these wordings, and the text of each; edits that do not apply are left out."""
    texts = {one: one.text for one in rewordings if not one.edit}
    edited = list(dict.fromkeys(one for one in rewordings if one.edit))
    if not edited:
        return model, texts
    placed = model.ask(OtherWordings).worded([(plain(one.text), one.edit) for one in edited])
    return placed.model, texts | {one: text for one, text in zip(edited, placed.texts, strict=True) if text is not None}
