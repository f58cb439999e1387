"""Study files: what they say is read, and every mistake in them is named at once."""

from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.data import Wanted
from raison.studies.entries import GridRun, KnownFeatures, StudyModel
from raison.studies.file import StudyError, read, without_permission

GOOD = """
schema = 1
title = "A small one"
source = "Nobody, table 1"
size = "mini"
methods = ["occlusion", "lime(samples=32)", "random(draws=3)"]
metrics = ["token_f1(top=25)", "comprehensiveness", "consistency"]
select = ["comprehensiveness"]
agreement = true

[settings]
unit = "token"
target = ["positive", "negative"]
seeds = [3, 5]

[models.one]
name = "demo/sst2"
labels = ["no", "yes"]

[models.two]
name = "some/folder"

[data.reviews]
source = "reviews.jsonl"
text = "body"
rationale = "marks"
limit = 30
sample = 1

[data.words]
source = "sst2"
known_features = { words = ["red", "green"], position = 2 }

[[claims]]
says = "one is better"
metric = "token_f1(top=25)"
above = "random(draws=3) by comprehensiveness"
than = "occlusion"
run = "two--words"

[[claims]]
says = "it is small"
metric = "consistency(batch=64)"
below = "lime(samples=32)"
than = 1
"""


def written(folder: Path, text: str, name: str = "a.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(StudyError) as caught:
        read(written(folder, text))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(str(folder / "a.toml"))
    assert tuple(line.strip() for line in lines[1:]) == caught.value.mistakes
    return caught.value.mistakes


def test_everything_that_the_file_says_is_read(tmp_path: Path) -> None:
    whole = read(written(tmp_path, GOOD))
    assert whole.title == "A small one"
    study = whole.spec
    assert study.agreement
    assert (study.settings.unit, study.settings.seeds) == ("token", (3, 5))
    assert study.settings.target == ("positive", "negative")
    assert study.grid.models["one"] == StudyModel("demo/sst2", ("no", "yes"))
    reviews, words = study.grid.data["reviews"], study.grid.data["words"]
    assert (reviews.wanted, reviews.limit, reviews.sample) == (Wanted(text="body", rationale="marks"), 30, 1)
    assert words.known_features == KnownFeatures(("red", "green"), 2)
    assert (words.wanted, words.split) == (Wanted(), "test")
    assert tuple(run.name for run in study.grid.wanted) == ("one--reviews", "one--words", "two--reviews", "two--words")


def test_claims_are_written_as_the_records_name_methods_and_metrics(tmp_path: Path) -> None:
    first, second = read(written(tmp_path, GOOD)).spec.claims
    assert first.to_dict() == {
        "says": "one is better",
        "metric": "token_f1(top=25)",
        "above": "random(draws=3) by comprehensiveness",
        "than": "occlusion",
        "run": "two--words",
    }
    assert second.to_dict() == {
        "says": "it is small",
        "metric": "consistency",
        "below": "lime(samples=32)",
        "than": 1.0,
    }


def test_runs_that_are_named_replace_the_grid(tmp_path: Path) -> None:
    named = '[[runs]]\nmodel = "two"\ndata = "words"\n'
    study = read(written(tmp_path, GOOD.replace("[[claims]]", f"{named}\n[[claims]]", 1)))
    assert study.spec.grid.wanted == (GridRun("two", "words"),)


@pytest.mark.parametrize(("file", "name"), [("rpi.toml", "rpi"), ("mini.toml", "table-mini"), ("study.toml", "table")])
def test_a_study_is_called_as_its_file_or_folder(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / "table").mkdir()
    assert read(written(tmp_path / "table", GOOD, file)).name == name


def test_the_digest_is_of_the_whole_file(tmp_path: Path) -> None:
    first = read(written(tmp_path, GOOD)).digest
    assert read(written(tmp_path, GOOD)).digest == first
    assert read(written(tmp_path, GOOD + "\n# a word")).digest != first


ONE_MISTAKE = {
    ("schema = 1\n", ""): "the study: schema is missing; give a whole number.",
    ("schema = 1\n", "schema = 2\n"): (
        "the study: schema is 2, and this version of raison reads 1: write schema = 1, or update raison."
    ),
    ("title =", "titel ="): "unknown key 'titel'. Did you mean 'title'?",
    ('size = "mini"', 'size = "tiny"'): "the study: unknown size 'tiny'. Did you mean 'mini'?",
    ('"occlusion", "lime', '"oclusion", "lime'): "methods: unknown method 'oclusion'. Did you mean 'occlusion'?",
    ('lime(samples=32)",', 'lime(sample=32)",'): "methods: unknown setting of lime 'sample'. Did you mean 'samples'?",
    ('"random(draws=3)"]', '"random(draws=0)"]'): "methods: draws of random cannot be 0: give a whole number",
    ('"occlusion", "lime', '"occlusion", "occlusion", "lime'): "methods: occlusion is named twice; remove one.",
    ('"comprehensiveness", "con', '"comprehensivenes", "con'): "metrics: unknown metric 'comprehensivenes'.",
    ('"comprehensiveness", "con', '"token_f1(top=25)", "comprehensiveness", "con'): (
        "metrics: token_f1(top=25) is named twice; remove one."
    ),
    ('select = ["comp', 'select = ["consistency", "comp'): "consistency evaluates many texts together",
    ('unit = "token"', 'unit = "wrd"'): "[settings]: unknown unit 'wrd'. Did you mean 'word'?",
    ("seeds = [3, 5]", "seeds = [3, 3]"): "[settings]: seeds is [3, 3]; give a list of different whole numbers.",
    ("seeds = [3, 5]", 'of = "probabilty"'): "[settings]: unknown of 'probabilty'. Did you mean 'probability'?",
    ("seeds = [3, 5]", 'removal = "mak"'): "[settings]: unknown removal 'mak'. Did you mean 'mask'?",
    ("seeds = [3, 5]", "truncate = 1"): "[settings]: truncate is 1; give true or false.",
    ('name = "some/folder"', 'nane = "x"\nname = "y"'): "[models.two]: unknown key 'nane'. Did you mean 'name'?",
    ('name = "some/folder"', 'name = "y"\ndtype = "float31"'): "[models.two]: unknown dtype 'float31'.",
    ('"no", "yes"', '"no", "No"'): "[models.one]: labels names a class twice; give each class a name of its own.",
    ("[models.two]", "[models.'two--words']"): "[models.two--words]: a name may contain only letters",
    ("limit = 30\n", ""): "[data.reviews]: sample draws `limit` rows, so also give limit.",
    ("sample = 1", 'pair = ["a", "b"]'): "[data.reviews]: text and pair exclude each other",
    ('["red", "green"]', '["red"]'): "[data.words.known_features]: words needs two or more words",
    ("position = 2", "positon = 2"): "[data.words.known_features]: unknown key 'positon'. Did you mean 'position'?",
    ('run = "two--words"', 'run = "two--word"'): "number 1: unknown run 'two--word'. Did you mean 'two--words'?",
    ('metric = "token_f1(top=25)"', 'metric = "token_f1(top=5)"'): (
        "number 1: the study does not measure 'token_f1(top=5)': add it to metrics, or name one of comprehensiveness, "
        "consistency, token_f1(top=25)."
    ),
    ('than = "occlusion"', 'than = "occlsion"'): "number 1: unknown row 'occlsion'. Did you mean 'occlusion'?",
    ('than = "occlusion"', 'than = "saliency"'): (
        "number 1: the study has no row 'saliency': add it to methods, or name one of lime(samples=32), occlusion, "
    ),
    ('than = "occlusion"', 'than = "occlusion by token_f1(top=25)"'): (
        "number 1: the study has no row 'occlusion by token_f1(top=25)': add it to methods and select, or name one of"
    ),
    ('metric = "token_f1(top=25)"', 'metric = "aopc_sufficency"'): "number 1: unknown metric 'aopc_sufficency'.",
    ('run = "two--words"', 'model = "two"'): (
        'number 1: model is not a key of a claim; select a run with run = "MODEL--DATA".'
    ),
    ('run = "two--words"', 'data = "words"'): (
        'number 1: data is not a key of a claim; select a run with run = "MODEL--DATA".'
    ),
    ('than = "occlusion"', 'than = "occlusion"\nbelow = "random"'): "number 1: give either above or below.",
    ("than = 1\n", ""): "number 2: than is missing; give a row's label or a number.",
    ("than = 1\n", "than = 1\nby = 0.1\n"): "number 2: it compares with a number: leave by out.",
    ('metric = "token_f1(top=25)"\n', "metric = \"token_f1(average='micro')\"\nby = 0.1\n"): (
        "number 1: token_f1(average='micro') has one value for all texts together: leave by out."
    ),
    ("than = 1\n", 'than = "lime(samples=32)"\n'): "number 2: it compares lime(samples=32) with itself.",
}


@pytest.mark.parametrize(("change", "said"), ONE_MISTAKE.items(), ids=[said[:50] for said in ONE_MISTAKE.values()])
def test_a_mistake_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    old, new = change
    assert old in GOOD
    found = mistakes(tmp_path, GOOD.replace(old, new, 1))
    assert any(said in line for line in found), found


@pytest.mark.parametrize("wrong", ["above = 0.2", 'above = ""', "above = []"])
def test_a_side_that_cannot_be_read_is_one_mistake(tmp_path: Path, wrong: str) -> None:
    found = mistakes(tmp_path, GOOD.replace('above = "random(draws=3) by comprehensiveness"', wrong, 1))
    assert found == (f"[[claims]] number 1: above is {wrong[8:]}; give a text in quotes.".replace('""', "''"),)


def test_a_run_that_is_named_twice(tmp_path: Path) -> None:
    named = '[[runs]]\nmodel = "two"\ndata = "words"\n'
    found = mistakes(tmp_path, GOOD.replace("[[claims]]", f"{named}{named}\n[[claims]]", 1))
    assert "[[runs]]: model 'two' on data 'words' is named twice; remove one." in found


def test_runs_that_do_not_exist_are_named(tmp_path: Path) -> None:
    runs = '[[runs]]\nmodel = "too"\ndata = "words"\n\n[[runs]]\nmodel = "two"\n'
    found = mistakes(tmp_path, GOOD + runs)
    assert any("[[runs]] number 1: unknown model 'too'. Did you mean 'two'?" in line for line in found)
    assert "[[runs]] number 2: data is missing; give a text in quotes." in found


def test_nothing_to_select_from(tmp_path: Path) -> None:
    found = mistakes(tmp_path, GOOD.replace(', "random(draws=3)"]', "]"))
    assert any(line.startswith("select: select= chooses one of several maps") for line in found)


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    """Each of these alone is one mistake; together none hides another."""
    together = [
        ("title =", "titel ="),
        ('"occlusion", "lime', '"oclusion", "lime'),
        ('"comprehensiveness", "con', '"comprehensivenes", "con'),
        ('select = ["comp', 'select = ["consistency", "comp'),
        ('unit = "token"', 'unit = "wrd"'),
        ("seeds = [3, 5]", "seeds = [3, 3]"),
        ('"no", "yes"', '"no", "No"'),
        ("limit = 30\n", ""),
        ("position = 2", "positon = 2"),
        ('run = "two--words"', 'run = "two--word"'),
    ]
    text = GOOD
    for change in together:
        text = text.replace(*change, 1)
    found = mistakes(tmp_path, text)
    for change in together:
        assert any(ONE_MISTAKE[change] in line for line in found), change


def test_a_file_that_is_no_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a.toml is not TOML: .*line 2.*\.$") as caught:
        read(written(tmp_path, 'schema = 1\ntitle = "open\n'))
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none.toml is missing"):
        read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes('title = "caf\xe9"'.encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read(tmp_path / "latin.toml")


@pytest.mark.parametrize("line", ["even_at_chance = true\n", "  even_at_chance = true\n", "\teven_at_chance=true\n"])
def test_the_key_that_lets_a_study_go_on_is_not_part_of_what_it_asks(line: str) -> None:
    assert without_permission(f"[tasks.a]\n{line}x = 1\n") == "[tasks.a]\nx = 1\n"


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "1" * 5000], ids=["deep", "long"])
def test_values_that_python_cannot_read_are_one_line(tmp_path: Path, value: str) -> None:
    with pytest.raises(DataError, match=r"a.toml is not TOML: .*(nest too deeply|4300 digits)"):
        read(written(tmp_path, f"schema = {value}\n"))
