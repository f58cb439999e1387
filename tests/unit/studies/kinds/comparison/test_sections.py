"""The titles of a comparison's tables."""

from types import SimpleNamespace

from raison.studies.kinds.comparison.sections import titles_of


def test_tables_of_one_model_and_one_file_are_told_apart() -> None:
    runs = {
        name: SimpleNamespace(header=SimpleNamespace(model=model, data=data))
        for name, model, data in (("m--a", "m", "x.tsv"), ("m--b", "m", "x.tsv"), ("n--a", "n", "x.tsv"))
    }
    assert list(titles_of(runs).values()) == ["m on x.tsv (m--a)", "m on x.tsv (m--b)", "n on x.tsv"]
