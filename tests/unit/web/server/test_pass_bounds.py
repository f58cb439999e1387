"""Requests that would take more passes than a server allows."""

import pytest

import raison
from raison.core.errors import InputError
from raison.web.server.bodies import ExplainBody
from raison.web.server.calls import ExplanationRequest
from raison.web.server.pass_bounds import COUNTED, Bound, of_check, of_prediction
from raison.web.server.settings import Limits
from raison.web.server.trust import CheckRequest
from tests.serving import words


def test_a_refusal_says_how_many_for_what_and_what_to_change() -> None:
    bound = Bound(1200, "a text of 3 words", "fewer samples")
    bound.check("lime", Limits(passes=1200))
    with pytest.raises(InputError) as refused:
        bound.check("lime", Limits(passes=1199))
    assert str(refused.value) == (
        "lime needs up to 1,200 passes for a text of 3 words, and this server allows 1,199: take fewer samples."
    )


def test_a_number_of_thousands_of_digits_is_not_written_out() -> None:
    text = "word " * 3000
    body = ExplainBody(model="words", text=text, method="shapley_exact")
    asked = ExplanationRequest.read(body, Limits())
    assert of_prediction(words(), body, asked.method).passes == 2**3000
    with pytest.raises(InputError, match=f"needs more than {COUNTED:,} passes for a text of 3,000 words"):
        asked.check(words(), Limits())


@pytest.mark.parametrize(
    "longer", ["", ", and so were the plot, the music, the pictures and the end, which nobody saw"]
)
def test_a_check_counts_the_tests_of_its_explanation(longer: str) -> None:
    read: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        read.extend(texts)
        return [[one, 1 - one] for one in (1 / (1 + len(text)) for text in texts)]

    model = raison.load(counted, classes=["short", "long"])
    body = ExplainBody(model="words", text=f"It's a good film, not a bad one{longer}", method="lime(samples=40)")
    asked = CheckRequest.read(body, Limits())
    bound = of_check(model, body, asked.own.method)
    alone = of_prediction(model, body, asked.own.method)
    read.clear()
    asked.run(model, [asked])
    # With the text's prediction and its full removal, which no bound counts.
    assert alone.passes + 2 < len(read) <= bound.passes + 2
    with pytest.raises(
        InputError, match=f"a check of lime.* needs up to {bound.passes} passes for a text of (9|28) words and"
    ):
        asked.check(model, Limits(passes=bound.passes - 1))
