"""A recorded answer after a prompt whose sources were edited."""

from raison.core.errors import TextTooLongError
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import TokenizedPrompt
from raison.models.tokens.sourced import sourced
from raison.models.tokens.written_answer import WrittenAnswer
from raison.text.edits.sources import EditedSources, edit_sources
from raison.text.sourced import SourcePlace


def edited_answer(writer: Writer, answered: WrittenAnswer, name: str) -> WrittenAnswer | None:
    """The same answer tokens after the edited prompt; None if the edit does not apply, or the text becomes too long."""
    source = answered.source
    places = [
        SourcePlace(unit.name, start, unit.start, unit.end, end)
        for unit, (start, end) in zip(source.sources, source.blocks, strict=True)
    ]
    edited = edit_sources(name, source.prompt.text, places)
    prompt = None if edited is None else _read_alike(writer, answered, edited)
    if edited is None or prompt is None:
        return None
    try:
        output = writer.written(prompt, answered.output.ids)
    except TextTooLongError:
        return None
    return WrittenAnswer(sourced(prompt, edited.places), output, answered.statements, answered.whole)


def _read_alike(writer: Writer, answered: WrittenAnswer, edited: EditedSources) -> TokenizedPrompt | None:
    """Another text, read as the prompt was: as it stands, or as a rendered chat. None if it was read differently."""
    source = answered.source
    ways = writer.prompts_again(source.prompt.text, source.blocks)
    alike = [number for number, way in enumerate(ways) if way.ids == source.prompt.ids]
    places = [(place.start, place.end) for place in edited.places]
    return writer.prompts_again(edited.text, places)[alike[0]] if alike else None
