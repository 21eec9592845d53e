"""Many questions at once while graphs are published: each reads one graph, and none is closed under a reader."""

import threading
from types import SimpleNamespace

from hades.retrieval.answers import Answers


class OneGraph:
    """A view that knows its version and whether it was closed."""

    def __init__(self, version):
        self.version, self.closed = version, False
        self.info = SimpleNamespace(snapshot=version)

    def close(self):
        assert not self.closed
        self.closed = True


def answers_over(current):
    opened = []

    def open_view():
        opened.append(OneGraph(current[0]))
        return opened[-1]

    return Answers(open_view, lambda: current[0], tools=None), opened


def test_a_view_stays_open_until_its_last_reader_is_done():
    current = ["g1"]
    answers, opened = answers_over(current)
    with answers.lease() as first, answers.lease() as same:
        assert first is same
        current[0] = "g2"
        with answers.lease() as second:
            assert (first.version, second.version) == ("g1", "g2")
        assert not first.closed
    assert opened[0].closed
    assert not opened[1].closed
    answers.close()
    assert opened[1].closed


def test_closing_waits_for_readers():
    answers, opened = answers_over(["g1"])
    with answers.lease() as view:
        answers.close()
        assert not view.closed
    assert [one.closed for one in opened] == [True]


def test_asking_what_is_ready_opens_nothing_and_waits_for_nobody():
    current = ["g1"]
    answers, opened = answers_over(current)
    assert answers.ready() is None
    assert opened == []
    with answers.lease():
        assert answers.ready().snapshot == "g1"
    current[0] = "g2"
    assert answers.ready() is None
    assert len(opened) == 1
    with answers._lock:
        assert answers.ready() is None


def test_hundreds_of_publishes_under_many_readers():
    current, wrong = ["g0"], []
    answers, opened = answers_over(current)
    stop = threading.Event()

    def read():
        while not stop.is_set():
            with answers.lease() as view:
                if view.closed or view.info.snapshot != view.version:
                    wrong.append(view.version)

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    for number in range(1, 300):
        current[0] = f"g{number}"
        with answers.lease() as view:
            assert view.version == f"g{number}"
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    answers.close()
    assert all(view.closed for view in opened)
    assert len(opened) == 300
