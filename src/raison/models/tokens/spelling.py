"""Whether tokens spell a text as it was given: a tokenizer may normalise accents, cases and spaces."""

from raison.core.note_names import RESPELLED


def respelled(given: str, spelled: str) -> dict[str, object]:
    """A note if the tokens of a text spell another one, apart from white space around it."""
    if given.strip() == spelled.strip():
        return {}
    return {RESPELLED: f"the tokenizer does not keep the given text: its tokens spell {spelled.strip()!r:.200}"}
