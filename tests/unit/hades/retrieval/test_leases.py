"""Many questions at once while graphs are published: each reads one graph from its first read to
its last.
"""

import threading
from types import SimpleNamespace

from hades.retrieval.answers import Answers


def answers_over(current):
    opened = []

    def open_view():
        opened.append(
            SimpleNamespace(version=current[0], info=SimpleNamespace(snapshot=current[0]))
        )
        return opened[-1]

    return Answers(open_view, lambda: current[0], tools=None), opened


def test_a_reader_keeps_its_graph_while_another_is_published():
    current = ["g1"]
    answers, opened = answers_over(current)
    with answers.lease() as first, answers.lease() as same:
        assert first is same
        current[0] = "g2"
        with answers.lease() as second:
            assert (first.version, second.version) == ("g1", "g2")
    assert len(opened) == 2


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
                if view.info.snapshot != view.version:
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
    assert len(opened) == 300
