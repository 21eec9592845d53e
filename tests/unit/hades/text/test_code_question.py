"""Questions about code are taken apart: each kind of evidence is found where a person would point
at it.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hades.text.code_questions import Frame, read_code_question, read_frames
from tests.patience import examples

ISSUE = """Session.get() ignores `max_redirects`
<!-- please search first -->
### Describe the bug
Calling `requests.sessions.Session.get` fails, see src/requests/models.py and
https://github.com/psf/requests/blob/main/requests/adapters.py#L10-L20 for the cause.
It says "Exceeded the allowed number of redirects" at once.

```python
s = requests.Session()
s.max_redirects = 3
```

```
$ pip install requests
Traceback (most recent call last):
  File "/home/me/run.py", line 3, in <module>
    s.get(url)
  File "/usr/lib/python3/site-packages/requests/sessions.py", line 520, in request
    resp = self.send(prep, **send_kwargs)
requests.exceptions.TooManyRedirects: ignored
ValueError: no redirects left for this session
```

### Environment
- Python 3.9.1
- requests: 2.26.0
- [X] I agree to the code of conduct
"""


def test_an_issue_is_taken_apart() -> None:
    question = read_code_question(ISSUE)
    assert question.title == "Session.get() ignores `max_redirects`"
    assert question.inline == ("max_redirects", "requests.sessions.Session.get")
    assert {"src/requests/models.py", "requests/adapters.py"} <= set(question.paths)
    assert "requests.sessions.Session.get" in question.dotted
    assert question.frames[-1] == Frame(
        "/usr/lib/python3/site-packages/requests/sessions.py", 520, "request"
    )
    assert "ValueError: no redirects left for this session" in question.errors
    assert "Exceeded the allowed number of redirects" in question.quotes
    assert question.commands == ("pip install requests",)
    assert "s.max_redirects = 3" in question.code


def test_form_text_and_comments_are_not_prose() -> None:
    question = read_code_question(ISSUE)
    assert "2.26.0" not in question.prose + question.code
    for words in ("code of conduct", "please search first", "Describe the bug", "2.26.0"):
        assert words not in question.prose


def test_a_plain_sentence_is_its_title_and_no_evidence_of_code() -> None:
    question = read_code_question("Which river flows through Paris?")
    assert (question.title, question.prose, question.has_evidence) == (
        "Which river flows through Paris?",
        "",
        False,
    )


TRACES = {
    "python": '  File "a/b.py", line 3, in run\n    go()\n  File "a/c.py", line 9, in go',
    "ipython": "~\\lib\\pkg\\core.py in load(self, x)\n----> 1 x",
    "javascript": "    at load (/app/src/load.js:10:5)\n    at main (/app/index.js:2:1)",
    "java": "\tat com.acme.Store.read(Store.java:42)\n\tat com.acme.Main.main(Main.java:7)",
    "go": "main.run()\n\t/src/cmd/run.go:31 +0x1d",
    "ruby": "lib/job.rb:12:in `perform'",
}
FRAMES = {
    "python": [("a/b.py", 3, "run"), ("a/c.py", 9, "go")],
    "ipython": [("~/lib/pkg/core.py", 0, "load")],
    "javascript": [("/app/index.js", 2, "main"), ("/app/src/load.js", 10, "load")],
    "java": [("Main.java", 7, "com.acme.Main.main"), ("Store.java", 42, "com.acme.Store.read")],
    "go": [("/src/cmd/run.go", 31, "")],
    "ruby": [("lib/job.rb", 12, "perform")],
}
LINES = [
    "```",
    "```py",
    "x = a.b.c()",
    "# Head",
    "",
    "    code",
    "Error: no",
    '"quoted words here"',
    "see a/b/c.py",
    '  File "x.py", line 1, in f',
    "$ ls",
    "- [ ] box",
    "plain text",
]


@pytest.mark.parametrize("language", TRACES)
def test_frames_come_in_the_order_of_the_calls(language: str) -> None:
    frames = read_frames(TRACES[language])
    assert [(frame.path, frame.line, frame.function) for frame in frames] == FRAMES[language]


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=25))
def test_each_line_goes_to_one_part_at_most(lines: list[str]) -> None:
    question = read_code_question("title here\n" + "\n".join(lines))
    kept = f"{question.prose}\n{question.code}".split("\n")
    for line in set(lines) - {"", "```", "```py"}:
        assert kept.count(line) <= lines.count(line)


@pytest.mark.parametrize(
    "unit", [" ", "a.", "/", "x = 1 ", "`", "a_", "(", "A: ", "a/", "<!--", "'"], ids=repr
)
def test_twice_the_lines_cost_about_twice_the_steps(unit: str) -> None:
    """A line of one repeated piece is the worst case of a pattern; lines are bounded, so the whole
    text is.
    """
    line = unit * 1000
    for text in (line, f"```\n{line}\n```"):
        few, many = (_seconds(f"title\n{text}\n" * times) for times in (2, 8))
        assert many < 40 * few + 0.5


def _seconds(text: str) -> float:
    start = time.process_time()
    read_code_question(text)
    return time.process_time() - start
