"""Questions whose contexts are cut to a window around the answer, for studies with short inputs."""

import hashlib
import re
from dataclasses import replace

from raison.core.errors import DataError
from raison.core.targets.answer import Answer
from raison.data.dataset import BrokenLine, Dataset, Row

_WORD = re.compile(r"\S+")


def around_answers(data: Dataset, words: int) -> Dataset:
    """Every context cut to a window of at most `words` whole words that contains the row's first answer.

    A hash of question and context decides where in the window the answer lies, so that its place is uninformative and
    the same in every run. Answers move with the window; further answers outside it are dropped. A row whose answer has
    more words than the window is left out; `broken` and the name report it. Raises DataError for a window without
    words, for rows that are not questions with an answer, and if no row is left.
    """
    if words < 1:
        raise DataError(f"a window of {words} words holds no answer: give a whole number of at least 1.")
    rows: list[Row] = []
    left_out: list[BrokenLine] = []
    for row in data.rows:
        cut = _cut(row, words, data.name)
        if isinstance(cut, Row):
            rows.append(cut)
        else:
            left_out.append(cut)
    if not rows:
        raise DataError(f"{data.name}: no answer fits into a window of {words} words; give a longer one.")
    lost = f" ({len(left_out)} rows with longer answers left out)" if left_out else ""
    name = f"{data.name}, windows of {words} words around the answers{lost}"
    return replace(data, name=name, rows=tuple(rows), broken=(*data.broken, *left_out))


def _cut(row: Row, words: int, name: str) -> Row | BrokenLine:
    if isinstance(row.text, str) or len(row.text) != 2 or not row.answers or row.rationales:
        raise DataError(
            f"{name}, row {row.number}: windows are for pairs (question, context) with an answer and without "
            "rationales; leave such rows out, or the window."
        )
    question, context = row.text
    spans = [match.span() for match in _WORD.finditer(context)]
    answer = row.answers[0]
    answer_words = [number for number, (start, end) in enumerate(spans) if start < answer.end and end > answer.start]
    if len(answer_words) > words:
        return BrokenLine(row.number, f"the answer has {len(answer_words)} words, more than the window of {words}")
    if len(spans) <= words:
        return row
    # The window may start anywhere from where it ends with the answer to where it starts with it.
    earliest, latest = max(0, answer_words[-1] - words + 1), min(answer_words[0], len(spans) - words)
    first = earliest + _draw(question, context) % (latest - earliest + 1)
    start, end = spans[first][0], spans[first + words - 1][1]
    inside = tuple(
        Answer(other.start - start, other.end - start, other.text)
        for other in row.answers
        if start <= other.start and other.end <= end
    )
    return replace(row, text=(question, context[start:end]), answers=inside, units=())


def _draw(question: str, context: str) -> int:
    return int.from_bytes(hashlib.blake2b(repr((question, context)).encode(), digest_size=8).digest(), "little")
