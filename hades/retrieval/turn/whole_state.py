"""An answer from one state: a turn that meets a half-applied write begins again on a view that has none."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from hades.ports.view import GraphView, WriteUnderWay

Options = ParamSpec("Options")
Answer = TypeVar("Answer")


def from_whole_state(
    answer: Callable[Concatenate[GraphView, Options], Answer],
) -> Callable[Concatenate[GraphView, Options], Answer]:
    """Answer from the view that `WriteUnderWay` offers where the first one raises it."""

    @wraps(answer)
    def answer_whole(view: GraphView, /, *positional: Options.args, **named: Options.kwargs) -> Answer:
        try:
            return answer(view, *positional, **named)
        except WriteUnderWay as met:
            return answer(met.instead, *positional, **named)

    return answer_whole
