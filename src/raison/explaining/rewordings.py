"""Other wordings of texts, as a model reads them."""

from collections.abc import Sequence

from raison.core.capabilities.other_wordings import OtherWordings
from raison.core.inputs.parts import Given, plain
from raison.core.metric import Rewording
from raison.core.model import LanguageModel


def worded(model: LanguageModel, rewordings: Sequence[Rewording]) -> tuple[LanguageModel, dict[Rewording, Given]]:
    """The model that reads these wordings, and the text of each; edits that have no place are left out."""
    texts = {one: one.text for one in rewordings if not one.edit}
    own = list(dict.fromkeys(one for one in rewordings if one.edit))
    if not own:
        return model, texts
    found = model.ask(OtherWordings).worded([(plain(one.text), one.edit) for one in own])
    return found.model, texts | {one: text for one, text in zip(own, found.texts, strict=True) if text is not None}
