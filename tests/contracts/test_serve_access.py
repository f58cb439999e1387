"""Who may ask the server, and what its page allows."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from raison.web.server.pages import FILES
from raison.web.server.settings import Access
from tests.serving import LOCAL, WORDS, served_words, serving

ONE = {"model": WORDS, "text": "A good film"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with serving(served_words()) as client:
        yield client


@pytest.mark.parametrize(
    ("access", "headers", "status"),
    [
        (Access(), {}, 200),
        (Access(), {"host": "127.0.0.1:9000"}, 200),
        (Access(), {"host": "[::1]:9000"}, 200),
        (Access(), {"host": "evil.example"}, 403),
        (Access(), {"host": "evil.example:8000"}, 403),
        (Access(), {"host": "localhost.evil.example"}, 403),
        (Access(), {"host": "localhost@evil.example"}, 403),
        (Access(), {"host": ""}, 403),
        (Access(), {"host": "10.0.0.7"}, 403),
        (Access(allow_host=("here.example",)), {"host": "here.example"}, 200),
        (Access(), {"origin": LOCAL}, 200),
        (Access(), {"origin": "https://evil.example"}, 403),
        (Access(), {"origin": "http://localhost:9999"}, 403),
        (Access(), {"origin": "null"}, 403),
        (Access(), {"sec-fetch-site": "same-origin"}, 200),
        (Access(), {"sec-fetch-site": "cross-site"}, 403),
        (Access(host="0.0.0.0", token="t" * 16), {}, 401),
        (Access(host="0.0.0.0", token="t" * 16), {"authorization": "Bearer " + "t" * 15}, 401),
        (Access(host="0.0.0.0", token="t" * 16), {"authorization": "Basic " + "t" * 16}, 401),
        (Access(host="0.0.0.0", token="t" * 16), {"authorization": "Bearer " + "t" * 16}, 200),
        (Access(host="0.0.0.0", token="t" * 16), {"authorization": "bearer " + "t" * 16, "host": "10.0.0.7"}, 200),
        (Access(host="0.0.0.0", token="t" * 16), {"host": "evil.example"}, 403),
    ],
)
def test_only_who_may_come_comes_in(access: Access, headers: dict[str, str], status: int) -> None:
    with serving(served_words(access=access)) as client:
        found = client.get("/api/models", headers=headers)
        assert found.status_code == status
        assert "access-control-allow-origin" not in found.headers
        asked = client.post("/api/explain", json=ONE, headers=headers)
        assert asked.status_code == status
        if status != 200:
            assert list(found.json()) == ["error"]


def test_no_page_of_another_site_may_ask_whether_it_may(client: TestClient) -> None:
    wanted = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    found = client.options("/api/explain", headers=wanted)
    assert found.status_code == 403
    assert not [name for name in found.headers if name.startswith("access-control")]


def test_the_page_needs_no_token_and_allows_no_script_in_it() -> None:
    with serving(served_words(access=Access(token="t" * 16))) as client:
        for path in ("/", *(f"/assets/{name}" for name in FILES), "/healthz"):
            found = client.get(path)
            assert found.status_code == 200
            policy = found.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert found.headers["x-content-type-options"] == "nosniff"
        page = client.get("/").text
        assert "<script>" not in page
        assert "style=" not in page
        assert (
            client.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status_code == 200
        )
        for name in ("../app.py", "..%2fapp.py", "index.html", "%2e%2e/guard.py", "nothing.js"):
            assert client.get(f"/assets/{name}").status_code in (401, 404)
        assert client.get("/metrics").status_code == 401
