"""Prompts as data: what they render to, and every mistake in a file named at once."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from raison.core.errors import DataError, InputError, UnknownNameError
from raison.text import prompts
from raison.text.prompts import Prompt, Template
from raison.text.prompts.check import PromptError

SST2 = """Classify the sentiment of sentences. For each sentence the label is positive (P) or negative (N)

Text:hide new secretions from the parental units
Label:N

Text:the greatest musicians
Label:P

Text:are more deeply thought through than in most ' right-thinking ' films
Label:P

Text:on the worst revenge-of-the-nerds clichés the filmmakers could dredge up
Label:N

Text:a fine tale
Label:"""

GOOD = """
task = "Say how the day was. Be brief."
shot = "Day: {text}\\nIt was{label}"

[labels]
low = " bad"
high = " good"

[[shots]]
text = "rain and a flat tyre"
label = "low"
"""

SMALL = Prompt(
    name="small",
    task="Say how the day was. Be brief.",
    shot="Day: {text}\nIt was{label}",
    shots=(("rain and a flat tyre", "low"), ("sun and cake", "high")),
    labels={"low": " bad", "high": " good"},
)


def written(folder: Path, text: str) -> Path:
    path = folder / "day.toml"
    path.write_text(text, encoding="utf-8")
    return path


def chatml(messages: list[dict[str, str]]) -> str:
    turns = "".join(f"<{message['role']}>{message['content']}</{message['role']}>" for message in messages)
    return f"{turns}<assistant>"


def mistakes(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(PromptError) as caught:
        Prompt.read(written(folder, text))
    assert str(caught.value).startswith(str(folder / "day.toml"))
    assert all(mistake in str(caught.value) for mistake in caught.value.mistakes)
    return caught.value.mistakes


def test_the_paper_s_prompt_is_rendered_as_it_stands_there() -> None:
    assert prompts.named("sst2").render(None).around("a fine tale") == SST2


def test_the_longer_prompt_has_six_shots_in_the_paper_s_order() -> None:
    lines = prompts.named("rotten_tomatoes").render(None).around("x").split("\n")
    assert [line for line in lines if line.startswith("Label:")] == [f"Label:{word}" for word in [*"NPNPPN", ""]]
    assert [line for line in lines if line.startswith("Text:")][4] == "Text:spiderman rocks"


def test_without_shots_only_the_task_and_the_query_are_left() -> None:
    rendered = prompts.named("sst2_zero").render(None)
    assert (rendered.before, rendered.after) == (f"{SST2.split(chr(10))[0]}\n\nText:", "\nLabel:")
    assert len(rendered.parts) == 2


@pytest.mark.parametrize("name", prompts.names())
def test_shipped_prompts_say_where_they_come_from_and_have_their_parts(name: str) -> None:
    prompt = prompts.named(name)
    rendered = prompt.render(chatml)
    held = [rendered.before[start:end] for start, end in rendered.parts]
    assert (prompt.name, bool(prompt.source), prompt.classes) == (name, True, tuple(prompt.labels))
    assert all(end <= start for (_, end), (start, _) in pairwise(rendered.parts))
    assert " ".join(held[: len(held) - len(prompt.shots)]) == prompt.task
    for part, (text, label) in zip(held[len(held) - len(prompt.shots) :], prompt.shots, strict=True):
        assert part.partition(text)[1] == text
        assert prompt.labels[label] in part.partition(text)[2]


def test_every_class_has_as_many_shots_as_the_others_in_what_is_written_here() -> None:
    for name in ("imdb", "sentiment", "sentiment_chat", "topic", "emotion"):
        prompt = prompts.named(name)
        counts = {label: [given for _, given in prompt.shots].count(label) for label in prompt.classes}
        assert len(set(counts.values())) == 1, name


def test_find_takes_a_prompt_a_name_and_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert prompts.find(SMALL) is SMALL
    assert prompts.find("sst2") == prompts.named("sst2")
    assert prompts.find(str(path)) == prompts.find(path) == replace(SMALL, name="day", shots=SMALL.shots[:1])
    with pytest.raises(UnknownNameError, match="unknown prompt 'sst3'. Did you mean 'sst2'"):
        prompts.find("sst3")


def test_prompts_can_be_keys() -> None:
    assert {SMALL: 1}[replace(SMALL)] == 1


def test_the_query_is_the_shot_up_to_the_label() -> None:
    assert SMALL.query == "Day: {text}\nIt was"
    rendered = replace(SMALL, query="Now: {text}\nIt was").render(None)
    assert rendered.around("snow").endswith("cake\nIt was good\n\nNow: snow\nIt was")


def test_other_braces_are_text() -> None:
    prompt = replace(SMALL, shot='{"day": "{text}", "was": "{label}', query="", labels={"low": "bad", "high": "good"})
    assert prompt.render(None).around("{label}").endswith('good\n\n{"day": "{label}", "was": "')
    shots = (("a {label} and a {text}", "low"),)
    assert 'day": "a {label} and a {text}", "was": "bad' in replace(prompt, shots=shots).render(None).before


def test_a_separator_of_one_s_own() -> None:
    before = replace(SMALL, separator=" | ", shots=SMALL.shots[:1]).render(None).before
    assert before == "Say how the day was. Be brief. | Day: rain and a flat tyre\nIt was bad | Day: "


def test_all_in_one_message() -> None:
    rendered = replace(SMALL, chat="message", system="You are kind. You are quick.").render(chatml)
    plain = SMALL.render(None)
    opening = "<system>You are kind. You are quick.</system><user>"
    assert (rendered.before, rendered.after) == (opening + plain.before, plain.after + "</user><assistant>")
    held = [rendered.before[start:end] for start, end in rendered.parts]
    assert held == ["You are kind.", "You are quick.", *(plain.before[start:end] for start, end in plain.parts)]


def test_shots_as_turns() -> None:
    rendered = replace(SMALL, chat="turns", shot="", query="Day: {text}").render(chatml)
    assert rendered.around("snow") == (
        "<user>Say how the day was. Be brief.\n\nDay: rain and a flat tyre</user><assistant>bad</assistant>"
        "<user>Day: sun and cake</user><assistant>good</assistant><user>Day: snow</user><assistant>"
    )
    assert [rendered.before[start:end] for start, end in rendered.parts] == [
        "Say how the day was.",
        "Be brief.",
        "Day: rain and a flat tyre</user><assistant>bad",
        "Day: sun and cake</user><assistant>good",
    ]


def test_turns_without_shots_keep_the_task() -> None:
    rendered = replace(SMALL, chat="turns", shots=()).render(chatml)
    assert rendered.around("snow") == ("<user>Say how the day was. Be brief.\n\nDay: snow\nIt was</user><assistant>")


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        (lambda messages: "<assistant>", "leaves out, escapes or changes the user message"),
        (lambda messages: chatml(messages).lower(), "leaves out, escapes or changes"),
        (lambda messages: chatml(messages).replace('"', "&quot;"), "leaves out, escapes or changes"),
        (lambda messages: chatml(messages + messages), "repeats the user message"),
        (lambda messages: chatml(messages[::-1]), "reorders messages"),
        (lambda messages: chatml(messages).replace("cake", "cakes"), "changes the text of the prompt's messages"),
    ],
)
def test_a_template_that_does_not_take_texts_as_they_are(template: Template, fault: str) -> None:
    with pytest.raises(InputError, match=f"{fault}.*take a prompt without `chat`"):
        replace(SMALL, chat="turns").render(template)


def test_a_template_that_trims_is_told_from_one_that_does_not() -> None:
    def trims(messages: list[dict[str, str]]) -> str:
        return chatml([{**message, "content": message["content"].strip()} for message in messages])

    assert replace(SMALL, chat="message").render(trims) == replace(SMALL, chat="message").render(chatml)
    with pytest.raises(InputError, match="trim white space"):
        replace(SMALL, chat="message", query="Day: {text}\nIt was ").render(trims)


def test_a_chat_needs_a_template() -> None:
    with pytest.raises(InputError, match="'small' is a chat and the tokenizer has no chat template: take a prompt"):
        replace(SMALL, chat="turns").render(None)


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("{text}", "{txt}", "`shot` needs one {text} and then one {label} slot, and has {label}."),
        ("{label}", "", "`shot` needs one {text} and then one {label} slot, and has {text}."),
        ("Day: {text}\\nIt was{label}", "{label}: {text}", "`shot` needs one {text} and then one {label} slot, and "),
        ("task =", "taks =", "unknown key 'taks'. Did you mean 'task'?"),
        ("task =", 'query = "Day:"\ntask =', "`query` needs one {text} slot and no other, and has none."),
        ("task =", 'chat = "turn"\ntask =', "unknown chat 'turn'. Did you mean 'turns'?"),
        ("task =", 'scoring = "whole"\ntask =', "unknown scoring 'whole'."),
        ("task =", 'system = "Be kind."\ntask =', "`system` needs `chat`"),
        ("task =", "name = 3\ntask =", "`name` must be a text in quotes."),
        ('label = "low"', 'label = "lo"', "shot 1: unknown class 'lo'. Did you mean 'low'?"),
        ('label = "low"', 'class = "low"', "`shots` must be a list of tables"),
        ("rain and a flat tyre", " ", "shot 1 has no text."),
        ('high = " good"\n', "", "`labels` needs at least two classes"),
        (' good"', ' bad"', "'low' and 'high' have the same label word ' bad'"),
        ('" good"', '" "', "the label word of 'high' is empty."),
        ('" good"', "1", "`labels` must be a table [labels]"),
        ('shot = "Day: {text}\\nIt was{label}"', "", "give `shot`"),
        ('shot = "Day: {text}\\nIt was{label}"', 'query = "Day: {text} was"', "there are shots but no `shot`"),
    ],
)
def test_each_mistake_has_its_line(tmp_path: Path, old: str, new: str, mistake: str) -> None:
    assert GOOD.count(old) == 1
    (found,) = mistakes(tmp_path, GOOD.replace(old, new))
    assert found.startswith(mistake)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    text = 'shoot = "x"\nshot = "Day: {label}"\n[labels]\nlow = " bad"\n[[shots]]\ntext = "x"\nlabel = "high"\n'
    found = mistakes(tmp_path, text)
    assert [line.split()[0] for line in found] == ["unknown", "`shot`", "`labels`", "shot"]


def test_labels_are_missing(tmp_path: Path) -> None:
    assert mistakes(tmp_path, 'query = "{text} It was"')[0].startswith("there is no [labels]")


def test_mistakes_in_python_are_named_too() -> None:
    with pytest.raises(PromptError, match="the prompt 'small': `labels` needs at least two") as caught:
        replace(SMALL, labels={"low": " bad"}, shots=())
    assert len(caught.value.mistakes) == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing: give a prompt's file"):
        prompts.find(str(tmp_path / "none.toml"))
    with pytest.raises(DataError, match="is not TOML.*line 1"):
        Prompt.read(written(tmp_path, "shot = x\n"))
    (tmp_path / "latin.toml").write_bytes('task = "café"'.encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        Prompt.read(tmp_path / "latin.toml")
    with pytest.raises(DataError, match="cannot read"):
        Prompt.read(tmp_path)


def test_a_prompt_that_python_cannot_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not TOML: its values nest too deeply"):
        Prompt.read(written(tmp_path, f"shot = {'[' * 5000}{']' * 5000}\n"))
