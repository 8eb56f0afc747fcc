"""Every wait of a request counts against its deadline, down to the single byte."""

import socket
import threading

import pytest
from stubborn_server import HANGING, Behaviour, StubbornServer, never_answers, sends_without_end

from daypack.llm.client import NETWORK_ERRORS, NO_RETRY, Client
from daypack.types.deadline import NO_DEADLINE, Deadline


class Ticking:
    """A clock that moves on by a tenth of a second whenever it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.reads / 10


@pytest.mark.parametrize("behaviour", [one for one in HANGING if one is not never_answers])
def test_a_server_that_drips_does_not_extend_the_deadline(behaviour: Behaviour) -> None:
    clock = Ticking()
    with StubbornServer(behaviour) as server:
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            Client(server.url).send("GET", "/", None, retry=NO_RETRY, deadline=Deadline.after(5, clock))
        assert not server.released.is_set()
        assert clock.reads > 50, "each byte reads the clock"


def test_a_body_without_end_is_not_read_to_its_end() -> None:
    with StubbornServer(sends_without_end) as server, pytest.raises(NETWORK_ERRORS, match="more than"):
        Client(server.url).send("GET", "/", None, retry=NO_RETRY, deadline=NO_DEADLINE)


def test_a_tls_handshake_that_drips_does_not_extend_the_deadline() -> None:
    release = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x16\x03\x03\x40\x00")  # a record of 16 KB, of which the bytes come one by one
                while not release.wait(0.01):
                    try:
                        connection.sendall(b"\x02")
                    except OSError:
                        return

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(TimeoutError, match="the deadline has passed"):
            Client(url).send("GET", "/", None, retry=NO_RETRY, deadline=Deadline.after(2, Ticking()))
        assert not release.is_set()
        release.set()
        serving.join()


def test_the_earlier_of_two_deadlines_counts() -> None:
    now = [0.0]
    deadline = Deadline.after(3, lambda: now[0])
    assert deadline.within(10) is deadline
    assert deadline.within(1).remaining() == 1
    assert NO_DEADLINE.within(5).seconds == 5
    now[0] = 4.0
    assert (deadline.remaining(), deadline.has_passed, deadline.spent()) == (0.0, True, 4.0)
