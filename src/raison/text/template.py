"""A text from a template with named fields, each of which becomes a unit."""

from collections.abc import Mapping
from string import Formatter

from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.parts import PartedText
from raison.core.inputs.unit import Unit
from raison.text.surrogates import joined


def template(pattern: str, fields: Mapping[str, str]) -> PartedText:
    """The pattern with each {name} replaced by that field, and the fields as the text's units.

    The rest of the pattern is context: never removed and never scored. A blank field has no unit; white space around a
    field does not belong to it. "{{" stands for a brace. Raises InputError for a field that is missing, unused or not a
    string.
    """
    text, parts, used = "", [], set()
    for literal, name, form, conversion in _pieces(joined(pattern)):
        text += literal
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise InputError(f"the template's field {{{name}}} is not valid: write only a name, such as {{title}}.")
        if name not in fields:
            raise UnknownNameError("field of the template", name, fields)
        value = fields[name]
        if not isinstance(value, str):
            raise InputError(f"the field '{name}' is {value!r:.40}; it must be a string.")
        used.add(name)
        value = joined(value)
        start = len(text) + len(value) - len(value.lstrip())
        text += value
        if value.strip():
            parts.append(Unit(start, start + len(value.strip()), value.strip(), 0, name))
    unused = sorted(set(fields) - used)
    if unused:
        raise InputError(f"the template has no slot for the field '{unused[0]}': write {{{unused[0]}}} in it.")
    if not parts:
        raise InputError("all fields of the template are blank: there is nothing to explain.")
    return PartedText(text, tuple(parts))


def _pieces(pattern: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(Formatter().parse(pattern))
    except ValueError as error:
        raise InputError(f"cannot read the template {pattern!r:.60}: {error}.") from None
