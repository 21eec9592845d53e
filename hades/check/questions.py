"""The questions that the documentation has to answer, asked of both states."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hades.check.pages import CheckUsageError, State
from hades.check.report import Finding, Level
from hades.evaluation.folder import Section, plain_text, stands_in
from hades.night.columns import kind_numbers
from hades.night.standing import Asker, StandingAnswer
from hades.ports.graph import Kind, Passage
from hades.retrieval.pipeline import Tools
from hades.snapshot.view import GraphView
from hades.text.words import terms

NAMES = ("questions.yaml", "questions.yml")
_DEPTH = 5  # passages of an answer that a reader looks at
_SAME = 0.8  # of the lines of a section: it counts as the same
_EXAMPLE = "`questions:` with a list of texts, or of objects with `question`"


@dataclass(frozen=True)
class DocsQuestion:
    """A question, the section that must answer it, the words that its answer must hold."""

    text: str
    document: str = ""
    heading: str = ""
    words: tuple[str, ...] = ()
    line: int = 1  # in the file of questions


@dataclass(frozen=True)
class QuestionFile:
    """The questions of a repository, and the folder that the file names as its documentation."""

    path: str
    questions: tuple[DocsQuestion, ...]
    folder: str | None = None


def parse_questions(text: str, path: str) -> QuestionFile:
    """The questions of a YAML file; what is wrong with it is named."""
    try:
        loaded = yaml.load(text, yaml.BaseLoader)  # texts as they stand: 1.10 is no number
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise CheckUsageError(f"{path} is no YAML: {problem}; fix the file") from None

    if isinstance(loaded, Mapping):
        document = loaded
    else:
        document = {"questions": loaded}

    rows = document.get("questions")
    if not isinstance(rows, list):
        raise CheckUsageError(f"{path} has no list of questions; expected {_EXAMPLE}")

    _require_keys(
        document,
        ("docs", "questions"),
        "",
        path,
    )
    lines = text.split("\n")
    questions = tuple(_parse_row(row, path, lines) for row in rows)
    return QuestionFile(
        path,
        questions,
        str(document.get("docs") or "") or None,
    )


def _parse_row(
    row: Any,
    path: str,
    lines: Sequence[str],
) -> DocsQuestion:
    """One question; `requires` is `page#Heading`, or an object of `document` and `heading`."""
    fields = {"question": row} if isinstance(row, str) else row
    if not isinstance(fields, Mapping) or not str(fields.get("question") or "").strip():
        raise CheckUsageError(
            f"{path} has an entry without a question: {row!r}; expected {_EXAMPLE}"
        )

    _require_keys(
        fields,
        ("question", "requires", "words"),
        " in a question",
        path,
    )
    question = " ".join(str(fields["question"]).split())
    requires = fields.get("requires", "")

    if isinstance(requires, str):
        document, _, heading = requires.partition("#")
        requires = {
            "document": document,
            "heading": heading,
        }

    words = fields.get("words") or []
    words = [words] if isinstance(words, str) else words
    if not isinstance(requires, Mapping) or not isinstance(words, list):
        raise CheckUsageError(
            f"{path} has {row!r}; expected `requires` with a page or page#Heading, and `words` "
            "with a list of texts"
        )

    _require_keys(
        requires,
        ("document", "heading"),
        " in `requires`",
        path,
    )
    document, heading = (str(requires.get(key, "")).strip() for key in ("document", "heading"))
    number = _first_line_with(question[:40], lines)
    return DocsQuestion(
        question,
        document,
        heading,
        tuple(map(str, words)),
        number,
    )


def _first_line_with(text: str, lines: Sequence[str]) -> int:
    for number, line in enumerate(lines, 1):
        if text in " ".join(line.split()):
            return number

    return 1


def _require_keys(
    fields: Mapping[str, Any],
    known: Sequence[str],
    where: str,
    path: str,
) -> None:
    """Refuse a key that nothing reads: it would be a question or a demand that is not made."""
    if unknown := sorted(map(str, fields.keys() - set(known))):
        raise CheckUsageError(
            f"{path} has the key {unknown[0]!r}{where}; expected {', '.join(known)}"
        )


class Asking:
    """Questions of both graphs, and what their pages say."""

    def __init__(
        self,
        questions: QuestionFile,
        base: State,
        head: State,
        views: tuple[GraphView, GraphView],
        tools: Tools,
    ) -> None:
        self._questions, self._tools = questions, tools
        self._states, self._views = (base, head), views
        self._passages = tuple(map(_all_passages, views))
        self.answered = 0
        self.cited: set[str] = set()  # documents of the head that an answer cites

    def find_changes(self) -> list[Finding]:
        """What became of every answer."""
        findings = []
        for question in self._questions.questions:
            asker = Asker(question.text, self._tools, *self._views)
            old, new = asker.answers()
            self.cited.update(passage.document for passage in new.cited)
            findings += self._compare(question, old, new)

        return findings

    def note_shown(self, texts: Sequence[str]) -> None:
        """Ask the head what was asked elsewhere, for the documents that its answers show."""
        for text in texts:
            asker = Asker(
                text,
                self._tools,
                self._views[1],
                self._views[1],
            )
            self.cited.update(passage.document for passage in asker.answers()[1].cited)

    def _compare(
        self,
        question: DocsQuestion,
        old: StandingAnswer,
        new: StandingAnswer,
    ) -> list[Finding]:
        was_answered = _answers(question, old, self._states[0])
        is_answered = _answers(question, new, self._states[1])
        self.answered += is_answered

        if is_answered:
            if was_answered:
                return self._find_move(question, old, new)
            return []

        if not was_answered:
            return [
                self._finding(
                    "answer-missing",
                    Level.WARNING,
                    question,
                    self._want(question),
                )
            ]

        return [self._describe_loss(question, old, new)]

    def _describe_loss(
        self,
        question: DocsQuestion,
        old: StandingAnswer,
        new: StandingAnswer,
    ) -> Finding:
        """A lost answer: an error where the pages do not say it any more, a warning where they do
        and the search ranks it lower.
        """
        source = old.source
        assert source is not None
        base, head = self._states
        in_head = self._passages[1]
        documents = [source.document]
        sections = _texts_to_search(question, in_head, head)

        if question.document:
            documents = [_document_of(question, base)]
        elif question.words:
            documents = _documents_with_words(question, old) or documents
            sections = [_text_of(documents, in_head)]

        document = documents[0]
        if question.words:
            still_there = any(_has_words(question, text) for text in sections)
        else:
            still_there = _still_say(sections, _evidence(question, old, base))

        if still_there:
            message = "the pages still say it, but the search ranks it lower now"
            return self._finding(
                "answer-lost",
                Level.WARNING,
                question,
                message,
                old,
                new,
            )

        heading = question.heading or "".join(source.headings[-1:])
        headings: set[str] = set()
        for passage in in_head:
            headings.update(map(plain_text, passage.headings))

        if document not in {passage.document for passage in in_head}:
            cause = f"{document}, which answered it, is gone"
        elif heading and plain_text(heading) not in headings:
            cause = f"the section “{heading}” of {document}, which answered it, is gone"
        else:
            words = ", ".join(f"`{word}`" for word in question.words)
            cause = f"{document} no longer says {words or 'what answered it'}"

        message = f"lost: {cause}"
        return self._finding(
            "answer-lost",
            Level.ERROR,
            question,
            message,
            old,
            new,
            document,
        )

    def _find_move(
        self,
        question: DocsQuestion,
        old: StandingAnswer,
        new: StandingAnswer,
    ) -> list[Finding]:
        """A warning where another page answers; a note where the question says which page must."""
        if old.source is None or new.source is None or old.source.document == new.source.document:
            return []
        if _letters(" ".join(old.text)) == _letters(" ".join(new.text)):  # the page has a new name
            return []

        if question.document or question.words:
            level = Level.NOTE
        else:
            level = Level.WARNING

        message = f"answered from {new.source.document} now, from {old.source.document} before"
        return [
            self._finding(
                "answer-moved",
                level,
                question,
                message,
                old,
                new,
            )
        ]

    def _want(self, question: DocsQuestion) -> str:
        """Why a question counts as unanswered."""
        documents = {passage.document for passage in self._passages[1]}
        if question.document and _document_of(question, self._states[1]) not in documents:
            return f"no answer, in the base either: there is no page {question.document}"

        if question.document:
            required = f" from {question.document}"
        else:
            required = ""

        required += f" under “{question.heading}”" if question.heading else ""
        required += f" with {', '.join(question.words)}" if question.words else ""
        return f"no answer{required}, in the base either"

    def _finding(
        self,
        rule: str,
        level: Level,
        question: DocsQuestion,
        message: str,
        old: StandingAnswer | None = None,
        new: StandingAnswer | None = None,
        document: str = "",
    ) -> Finding:
        head = self._states[1]
        path = self._questions.path
        line = question.line
        page = posixpath.join(head.folder, document)

        if document and page in head.blobs:
            heading = question.heading
            if not heading and old is not None and old.source is not None:
                heading = "".join(old.source.headings[-1:])

            path = page
            line = _line_of(heading, head.texts.get(page, ""))

        says = _quoted(old), _quoted(new)
        return Finding(
            rule,
            level,
            path,
            line,
            message,
            question.text,
            *says,
        )


def _answers(
    question: DocsQuestion,
    answer: StandingAnswer,
    state: State,
) -> bool:
    """Whether an answer is one, from the section it requires, with the words it must hold."""
    if answer.source is None:
        return False

    shown = answer.retrieval.passages[:_DEPTH]
    return any(_has_words(question, text) for text in _texts_to_search(question, shown, state))


def _texts_to_search(
    question: DocsQuestion,
    passages: Sequence[Section],
    state: State,
) -> list[str]:
    """The texts to look for words in: that of the required section, else of all passages."""
    if question.document:
        places = frozenset({(_document_of(question, state), plain_text(question.heading))})
        passages = [passage for passage in passages if stands_in(passage, places)]

    if passages:
        return ["\n".join(passage.text for passage in passages)]

    return []


def _evidence(
    question: DocsQuestion,
    answer: StandingAnswer,
    state: State,
) -> list[str]:
    """The lines that answered: those nearest to the question of the quoted sentences, or of the
    required section where these are of another.
    """
    lines = list(answer.text)
    if answer.source is None or not _texts_to_search(question, [answer.source], state):
        shown = _texts_to_search(
            question,
            answer.retrieval.passages[:_DEPTH],
            state,
        )
        lines = "\n".join(shown).splitlines()

    asked_terms = set(terms(question.text))
    shared = []
    for line in lines:
        shared.append(len(asked_terms.intersection(terms(line))))

    nearest = max(shared, default=0)
    return [line for line, count in zip(lines, shared, strict=True) if count == nearest]


def _documents_with_words(question: DocsQuestion, answer: StandingAnswer) -> list[str]:
    """The documents of an answer that hold a word of the question, in their order."""
    words = list(map(plain_text, question.words))

    documents: dict[str, None] = {}
    for passage in answer.retrieval.passages[:_DEPTH]:
        plain = plain_text(passage.text)
        if any(word in plain for word in words):
            documents[passage.document] = None

    return list(documents)


def _text_of(documents: Sequence[str], passages: Sequence[Passage]) -> str:
    return "\n".join(passage.text for passage in passages if passage.document in documents)


def _line_of(heading: str, text: str) -> int:
    """The line of a heading of a page; the first one where it is gone."""
    sought = _letters(heading)
    titles = map(_letters, text.splitlines())
    return next((line for line, title in enumerate(titles, 1) if title == sought), 1)


def _still_say(texts: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether the texts still have these lines, but for a few that an edit touched."""
    whole = "\n".join(map(_letters, texts))

    written = []
    for letters in map(_letters, lines):
        if letters:
            written.append(letters)

    return sum(letters in whole for letters in written) >= _SAME * len(written)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, plain_text(text)))


def _has_words(question: DocsQuestion, text: str) -> bool:
    plain = plain_text(text)
    return all(plain_text(word) in plain for word in question.words)


def _document_of(question: DocsQuestion, state: State) -> str:
    """The required document as the graph calls it: its path in the folder of the documentation."""
    name = question.document.removeprefix("./")
    if name in state.documents:
        return name

    return name.removeprefix(f"{state.folder}/")


def _all_passages(view: GraphView) -> list[Passage]:
    return view.passages(kind_numbers(view.info.nodes, Kind.CHUNK.value))


def _quoted(answer: StandingAnswer | None) -> str:
    """The sentences of an answer with their page."""
    if answer is None or answer.source is None:
        return ""
    return f"{' '.join(' '.join(answer.text).split())} ({answer.source.document})"
