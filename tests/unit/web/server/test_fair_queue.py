"""Who comes next: clients of an address take turns, and so do addresses; equal requests go together."""

from dataclasses import dataclass

import pytest

from raison.web.server.answer_cache import OVERHEAD, AnswerCache
from raison.web.server.bodies import ExplainBody
from raison.web.server.calls import ExplanationRequest
from raison.web.server.fair_queue import Client, Turns, Waiting
from raison.web.server.settings import Limits


@dataclass(frozen=True)
class Ask:
    """A request of a client: what it asks, and its text."""

    client: str
    seed: int
    text: str = "a"
    address: str = "here"


def waiting(ask: Ask, method: str = "occlusion") -> Waiting:
    body = ExplainBody(model="m", text=ask.text, method=method, seed=ask.seed)
    return Waiting(Client(ask.address, ask.client), ExplanationRequest.read(body, Limits()))


def taken(turns: Turns) -> list[list[str]]:
    """All batches until nothing waits, each by its clients."""
    batches = []
    while len(turns):
        batches.append([one.client.name for one in turns.take()])
    return batches


def filled(*asks: Ask) -> Turns:
    turns = Turns()
    for ask in asks:
        turns.add(waiting(ask))
    return turns


def test_one_who_asks_much_waits_for_the_others_first_requests() -> None:
    turns = filled(*(Ask("many", seed) for seed in range(4)), Ask("one", 9), Ask("two", 8))
    assert taken(turns) == [["many"], ["one"], ["two"], ["many"], ["many"], ["many"]]


def test_an_address_with_many_clients_has_one_turn() -> None:
    turns = filled(*(Ask(f"c{seed}", seed) for seed in range(4)), Ask("far", 9, address="there"))
    assert taken(turns)[:3] == [["c0"], ["far"], ["c1"]]


def test_equal_settings_go_together_and_count_as_a_turn() -> None:
    turns = filled(Ask("a", 1), Ask("a", 2), Ask("b", 2), Ask("c", 1), Ask("c", 2))
    assert taken(turns) == [["a", "c"], ["b", "a", "c"]]


def test_of_a_client_only_the_next_request_joins() -> None:
    turns = filled(Ask("a", 1), Ask("b", 2), Ask("b", 1))
    assert taken(turns) == [["a"], ["b"], ["b"]]


def test_a_client_alone_fills_a_batch() -> None:
    turns = filled(*(Ask("a", 1, text) for text in "abc"))
    assert taken(turns) == [["a", "a", "a"]]


def test_a_batch_ends_at_its_size_and_costly_methods_have_small_ones() -> None:
    turns = Turns()
    for number in range(9):
        turns.add(waiting(Ask(f"c{number}", 1), "kernel_shap(samples=200)"))
    sizes = list(map(len, taken(turns)))
    assert sum(sizes) == 9
    assert max(sizes) <= 3


def test_what_is_taken_back_is_not_answered() -> None:
    turns = filled(Ask("a", 1), Ask("a", 2))
    held = waiting(Ask("a", 3))
    turns.add(held)
    assert turns.of(held.client) == 3
    assert turns.remove(held)
    assert not turns.remove(held)
    assert (len(turns), turns.of(held.client)) == (2, 2)
    assert len(turns.all()) == 2
    assert taken(turns) == [["a"], ["a"]]
    assert (len(turns), turns.of(held.client)) == (0, 0)


@pytest.mark.parametrize("clients", [1, 3, 20])
def test_nobody_waits_longer_than_a_round(clients: int) -> None:
    """However much others ask, a client's next request is answered after at most one of each of them."""
    turns = filled(*(Ask(f"c{client}", 100 * client + seed) for seed in range(5) for client in range(clients)))
    turns.add(waiting(Ask("late", 9999)))
    order = [name for [name] in taken(turns)]
    assert order.index("late") <= clients


def test_results_are_kept_up_to_so_many_bytes_and_the_latest_used_stay() -> None:
    kept = AnswerCache(3 * (10 + OVERHEAD))
    for key in (b"a", b"b", b"c"):
        kept.put(key, b"x" * 10)
    assert kept.get(b"a") == b"x" * 10
    kept.put(b"d", b"y" * 10)
    assert [kept.get(key) is None for key in (b"a", b"b", b"c", b"d")] == [False, True, False, False]
    assert kept.size == 3 * (10 + OVERHEAD)
    kept.put(b"large", b"z" * 10_000)
    assert kept.get(b"large") is None
    assert kept.size == 3 * (10 + OVERHEAD)
    nothing = AnswerCache(0)
    nothing.put(b"a", b"")
    assert nothing.get(b"a") is None
