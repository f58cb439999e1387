"""Messages of the component: what is sent back when an answer fails."""

from collections.abc import Mapping
from typing import Any

import pytest

from raison.web.component.messages import reply


def test_a_mistake_of_the_library_reaches_the_page_and_the_kernel() -> None:
    sent: list[dict[str, object]] = []

    def answer(_ask: str, _body: Mapping[str, Any]) -> dict[str, object]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reply(sent.append, answer, {"id": "1", "ask": "view", "body": {}})
    assert sent == [{"id": "1", "error": "this is a mistake of raison: ZeroDivisionError"}]
