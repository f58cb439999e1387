"""Requests that would take more passes than a server allows."""

import pytest

from raison.core.errors import InputError
from raison.web.server.bodies import ExplainBody
from raison.web.server.calls import ExplanationRequest
from raison.web.server.pass_bounds import COUNTED, Bound, of_prediction
from raison.web.server.settings import Limits
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
