"""Who gets an answer: this machine only, the token only, no other origin, no large body."""

import http.client
import json
import socket
from urllib.parse import urlsplit

import pytest

from cuasmrl.explain.play.game import SharedGame
from cuasmrl.explain.play.serving import Server
from tests.explain.play.conftest import Serve, Table


@pytest.fixture
def table(serve: Serve, game: SharedGame) -> Table:
    return serve(game)


def ask(table: Table, path: str = "", body: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Status and text of the answer; below the token unless the path begins with a slash."""
    address = urlsplit(table.address)
    line = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        given.setdefault("Content-Type", "application/json")
    where = path if path.startswith("/") else address.path + path
    line.request("GET" if body is None else "POST", where, body, given)
    answer = line.getresponse()
    return answer.status, answer.read().decode()


def test_with_the_token_there_is_a_page(table: Table) -> None:
    status, text = ask(table)
    assert status == 200
    assert text.startswith("<!doctype html>")


@pytest.mark.parametrize("path", ["/", "/events", "/wrong-token/", "/favicon.ico", "//"])
def test_without_the_token_there_is_nothing(table: Table, path: str) -> None:
    status, text = ask(table, path)
    assert status == 404
    assert "token" in text
    assert "gemm" not in text


def test_only_this_machine_can_connect(table: Table) -> None:
    assert table.address.startswith("http://127.0.0.1:")
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for other in others - {"127.0.0.1"}:
        with pytest.raises(OSError, match="refused|unreachable"):
            socket.create_connection((str(other), table.server.port), timeout=2)


def test_a_foreign_name_that_leads_here_is_refused(table: Table) -> None:
    assert ask(table, Host="attacker.example")[0] == 403
    assert ask(table, Host=f"localhost:{table.server.port}")[0] == 200
    assert ask(table, Host="localhost.attacker.example")[0] == 403


def test_foreign_origins_are_refused(table: Table) -> None:
    move = json.dumps({"version": 0, "to": 0}).encode()
    own = f"http://127.0.0.1:{table.server.port}"
    assert ask(table, "go", move, Origin=own)[0] == 200
    assert ask(table, "go", move, Origin="https://attacker.example")[0] == 403
    assert ask(table, "go", move, Origin="null")[0] == 403
    assert ask(table, "go", move, Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(table, "events", Origin="https://attacker.example")[0] == 403
    # A form of another page can send no JSON.
    assert ask(table, "go", move, Content_Type="text/plain")[0] == 415


def test_bodies_above_a_megabyte_are_refused(table: Table) -> None:
    large = b" " * ((1 << 20) + 1)
    assert ask(table, "move", large) == (413, "bodies above 1 MB are refused\n")
    assert ask(table, "move", Content_Length=str(1 << 30))[0] == 413


def test_large_bodies_without_a_length_are_refused(table: Table) -> None:
    address = urlsplit(table.address)
    line = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    pieces = (b" " * 65536 for _ in range(20))
    line.request(
        "POST", address.path + "move", pieces, {"Content-Type": "application/json"}, encode_chunked=True
    )
    assert line.getresponse().status == 413


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b'{"version": "x"}', b'{"version": 0, "move": 3}']
)
def test_nonsense_is_refused_in_a_sentence(table: Table, body: bytes) -> None:
    status, text = ask(table, "move", body)
    assert status == 400
    assert set(json.loads(text)) == {"sentence"}


def test_a_stale_move_is_refused_with_the_new_state(table: Table) -> None:
    yields = {"kind": "yield", "instruction": 200}
    assert ask(table, "move", json.dumps({"version": 0, "move": yields}).encode())[0] == 200
    status, text = ask(table, "move", json.dumps({"version": 0, "move": yields}).encode())
    found = json.loads(text)
    assert status == 409
    assert "the board has changed" in found["sentence"]
    assert found["state"]["version"] == 1


def test_a_port_in_use_picks_another(table: Table) -> None:
    other = Server(lambda token, over: None, port=table.server.port)
    assert not other.is_wanted_port
    assert other.port != table.server.port
