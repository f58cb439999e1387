"""Layers as a setting: every form, counted from either end, and what names none."""

import pytest

from raison.core.errors import InputError, UnsupportedError
from raison.core.internals.layers import Layers


@pytest.mark.parametrize(
    ("spec", "among_six"),
    [
        ("last", (5,)),
        ("third_last", (3,)),
        (0, (0,)),
        (5, (5,)),
        (-1, (5,)),
        (-6, (0,)),
        ("3 to 5", (3, 4, 5)),
        ("2 to 2", (2,)),
        ("-3 to -1", (3, 4, 5)),
        ("top 3", (5, 4, 3)),
        ("top 1", (5,)),
        ("bottom 3", (0, 1, 2)),
        ((4, 0), (4, 0)),
        ((1, -1), (1, 5)),
    ],
)
def test_every_form(spec, among_six):
    layers = Layers.of(spec, "rpi")
    assert layers.among(6) == among_six
    assert len(layers) == len(among_six)


def test_names_of_the_end_follow_the_models_depth():
    assert [Layers.of("last", "rpi").among(total) for total in (3, 12)] == [(2,), (11,)]
    assert [Layers.of("third_last", "rpi").among(total) for total in (3, 12)] == [(0,), (9,)]
    assert Layers.of("top 2", "rpi").among(12) == (11, 10)


@pytest.mark.parametrize(
    "spec",
    ["lats", "", "top", "top 0", "bottom 0", "top -1", "5 to 3", "0 to -1", "-1 to 2", "3-5", "1", (), (1, 1)],
)
def test_refuses_what_names_no_layers(spec):
    with pytest.raises(InputError) as caught:
        Layers.of(spec, "rpi")
    assert str(caught.value).startswith(f"layers of rpi cannot be {spec!r}: give 'last', 'third_last', a number")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", [(True, 2), True])
def test_a_truth_value_is_no_number(spec):
    with pytest.raises(InputError, match="layers of rpi cannot be"):
        Layers.of(spec, "rpi")


@pytest.mark.parametrize("spec", [6, -7, "top 7", "bottom 7", "4 to 6", (0, 6)])
def test_refuses_layers_beyond_the_model(spec):
    with pytest.raises(UnsupportedError, match=r"the model has no layers .*6 attention layers, numbered from 0 to 5"):
        Layers.of(spec, "rpi").among(6)


def test_refuses_one_layer_named_from_both_ends():
    layers = Layers.of((0, -6), "rpi")
    with pytest.raises(UnsupportedError, match="contain a layer twice"):
        layers.among(6)
    assert layers.among(7) == (0, 1)
