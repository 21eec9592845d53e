"""Questions about what changed: which time and subject they name, and the statements then and
now.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from functools import reduce
from itertools import groupby
from operator import attrgetter

import numpy as np

from hades.budget import TurnStage
from hades.ports.graph import Kind, Numbers
from hades.ports.services import ChangeSearch, MemoryHit, MemorySearch, TextChange
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.words import content_words, stem
from hades.text.dates import DateMention, as_moment, times_in
from hades.text.sentences import day
from hades.text.words import words
from schemas.answer import (
    AnswerSentence,
    AnswerSource,
    ChangeReport,
    CitedPassage,
    StatedChange,
)
from schemas.ids import Mask

Sentences = dict[str, tuple[str, TextChange]]

MAX_STATEMENTS = 12
_ALIKE = 0.5  # share of words from which a statement is a version of another
_LEAST_WORDS = 3  # of a statement
_NO_MARKS = str.maketrans("", "", "*_`")
_SHORT = 4  # letters of a stem that is a word as it is
_DEPTH = 1_000  # passages that are looked at for a word of the subject
_MEMORY = 100  # topics
_CHANGED = (
    r"(?:changed?|new|different|added|removed|updated|deleted|been (?:changed|added|removed))\b"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\bwhat(?:'s|’s)?(?: (?:is|has|have|was|were|did|all|else))* {_CHANGED}(?P<subject>.*)",
        r"\b(?:what|which) changes\b(?: (?:were|are|have been|there|made))*(?P<subject>.*)",
        r"\bhow (?:did|has|have|do|does) (?P<subject>.+?) "
        r"(?:been )?(?:changed?|evolved?|developed?)\b(?P<rest>.*)",
        rf"\b(?:has|have|did|is|was) (?:there )?(?:anything|something) {_CHANGED}(?P<subject>.*)",
        r"\b(?:has|have|did) (?P<subject>.+?) changed?\b(?P<rest>.*)",
        rf"\bwhich (?P<subject>.+?) (?:is|are|was|were|has|have) {_CHANGED}(?P<rest>.*)",
    )
)
_SINCE_WHEN = re.compile(
    r"\W*since when (?:(?:do|does|did|is|are|has|have|can|the|docs|page|pages|documentation) )*"
    r"(?P<statement>.+)",
    re.IGNORECASE,
)
# Times that people name otherwise than dates are read.
_SPOKEN_TIMES = tuple(
    (re.compile(rf"\b{spoken}\b", re.IGNORECASE), plain)
    for spoken, plain in (
        (
            r"(?:in|over|during|within) (?:the )?(?:last|past) (\w+) ((?:day|week|month|year)s)",
            r"since \1 \2 ago",
        ),
        (
            r"(?:in|over|during|within) (?:the )?(?:last|past) (day|week|month|year)",
            r"since last \1",
        ),
        (r"since ((?:mon|tues|wednes|thurs|fri|satur|sun)day)", r"since last \1"),
        (r"(?:recently|lately)", "since last month"),
    )
)
_EDGES = re.compile(
    r"^\W*(?:(?:about|in|on|with|to|for|of|from|regarding|the|our|my)\b\W*)+"
    r"|\W*\b(?:since|after|before|between|from|in|during|over|within|until|on|at|and|the)?\W*$",
    re.IGNORECASE,
)
_NO_SUBJECT = frozenset(
    map(stem, ("docs", "documentation", "documents", "pages", "anything", "say"))
)


@dataclass(frozen=True)
class ChangeQuestion:
    """A question about what changed: the subject, empty for everything, and the time; or since when
    a statement is there.
    """

    subject: str
    start: datetime | None
    end: datetime
    statement: str = ""
    kind: str = ""  # added or removed, where only these are asked for
    main: str = ""  # of the words of the subject, as they are compared

    def is_about(self, *texts: str) -> bool:
        """Whether texts speak of the subject: its main word, and half of its words."""
        spoken = _stems(" ".join(texts))
        stems = _subject_stems(self.subject)
        has_main = not self.main or self.main in spoken
        return has_main and 2 * len(spoken.intersection(stems)) >= len(stems)

    def fit(self, stated: StatedChange) -> int:
        """How many words of the subject a statement has."""
        texts = f"{stated.before} {stated.now} {_plain_name(stated.document)}"
        return len(_stems(texts).intersection(_subject_stems(self.subject)))

    @property
    def hint(self) -> str:
        """Letters that a text about the subject has."""
        if len(self.main) > _SHORT:
            return self.main[:-1]
        return self.main


def read_change_question(text: str, asked_at: datetime) -> ChangeQuestion | None:
    """What a question asks of the past of the corpus; None where it asks something else, or names
    no time.
    """
    if since_when := _SINCE_WHEN.match(text):
        statement = since_when["statement"].strip(" ?.")
        return ChangeQuestion(statement, None, asked_at, statement)

    plain = text
    for spoken, written in _SPOKEN_TIMES:
        plain = spoken.sub(written, plain)

    match = next(filter(None, (form.search(plain) for form in _FORMS)), None)
    mentions = times_in(plain, asked_at)
    if match is None or not mentions:
        return None

    time = next(
        (mention for mention in reversed(mentions) if mention.is_scope),
        mentions[-1],
    )
    end = min(time.end or asked_at, asked_at)
    is_past = time.start is None or time.start < end

    if not is_past or ("rest" in match.groupdict() and _trim(plain[time.to :])):
        return None

    verb = re.search(
        r"\b(?:added|(removed|deleted))\b",
        match[0],
        re.IGNORECASE,
    )
    if verb is None:
        kind = ""
    elif verb[1]:
        kind = "removed"
    else:
        kind = "added"

    return ChangeQuestion(
        _subject(plain, match, time),
        time.start,
        end,
        kind=kind,
    )


def _subject(
    text: str,
    match: re.Match[str],
    time: DateMention,
) -> str:
    """The subject without the time that stands in it or behind it."""
    begin, stop = match.span("subject")
    before = text[begin : max(begin, min(stop, time.at))]
    after = text[max(begin, min(stop, time.to)) : stop]
    return max(map(_trim, (before, after)), key=len)


def _trim(words_around: str) -> str:
    return _EDGES.sub("", words_around).strip(" ?!.,")


def find_changes(
    view: MeteredView,
    search: ChangeSearch | None,
    memory: MemorySearch | None,
    question: ChangeQuestion,
    shown: Sequence[CitedPassage],
) -> ChangeReport | None:
    """What is kept of the changes that a question asks for; None where it asks of a time before
    everything that is kept.
    """
    if search is None:
        return None

    with view.turn.stage("changes") as stage:
        kept_since = search.kept_since(question.start)
        if kept_since is None or question.end <= kept_since:
            return None

        holders = _find_holders(view, question.subject)
        counts = {word: len(numbers) for word, numbers in holders.items()}
        main = min(filter(counts.get, counts), key=lambda word: counts[word], default="")
        question = replace(question, main=main)
        kept = _PageChanges(view, question, shown)
        kept.read(search, stage)
        statements = kept.statements()
        sees_memory = view.only is None or view.only.is_open

        if memory is not None and sees_memory and not question.statement:
            remembered = _memory_changes(memory, question)
            statements += remembered[: view.turn.grant_reads(len(remembered))]

        if question.kind:
            statements = [stated for stated in statements if stated.change == question.kind]

        statements.sort(
            key=lambda stated: (question.fit(stated), stated.at, stated.document),
            reverse=True,
        )
        if holders:
            mentions = len(reduce(np.intersect1d, holders.values()))
        else:
            mentions = 0

        stage.given = len(statements)
        stage.coverage = float(bool(statements))
        return _report(
            question,
            kept_since,
            statements,
            mentions,
            is_cut=stage.capped or stage.early_stop,
        )


class _PageChanges:
    """The sentences that pages lost and got in a stretch of time, each once by its words; what came
    back or only moved has not changed.
    """

    def __init__(
        self,
        view: MeteredView,
        question: ChangeQuestion,
        shown: Sequence[CitedPassage],
    ) -> None:
        self._view, self._question = view, question
        self._shown: dict[str, list[tuple[str, str]]] = {}  # texts and headings of found passages
        for passage in shown:
            headings = " ".join((passage.title, *passage.headings))
            text = " ".join(passage.text.split())
            self._shown.setdefault(passage.document, []).append((text, headings))

        self._about: dict[tuple[str, str], bool] = {}
        self._gone: Sentences = {}
        self._came: Sentences = {}
        self._names: dict[str, str] = {}  # of pages that got another one

    def read(self, search: ChangeSearch, stage: TurnStage) -> None:
        """Take in the changes, as many as the plan allows to read."""
        turn = self._view.turn
        question = self._question
        changes = search.find(
            question.start,
            question.end,
            may_tell=self._may_tell,
            goes_on=lambda: not turn.expired(),
        )

        for _, moment in groupby(changes, key=attrgetter("at")):
            gone: Sentences = {}
            came: Sentences = {}
            for change in moment:
                if turn.expired():
                    return

                stage.taken += 1
                texts = (*change.gone, *change.came)
                is_about = any(self._is_about(text, change.name) for text in texts)

                if is_about and not turn.grant_reads(1):
                    return

                gone |= {_key(sentence): (sentence, change) for sentence in change.gone}
                came |= {_key(sentence): (sentence, change) for sentence in change.came}

            self._take(gone, came)

    def _may_tell(self, name: str, text: str) -> bool:
        """Whether a text of a page may be about the subject."""
        hint = self._question.hint
        return hint in text.casefold() or hint in name.casefold() or name in self._shown

    def _take(self, gone: Sentences, came: Sentences) -> None:
        """Take in what went and came at one moment."""
        for key in gone.keys() & came.keys():
            _, former = gone.pop(key)
            sentence, change = came.pop(key)
            self._names[former.name] = change.name

            if key in self._came:
                _, first = self._came[key]
                place = replace(
                    first,
                    name=change.name,
                    document=change.document,
                )
                self._came[key] = sentence, place

        for key, lost in gone.items():
            if self._came.pop(key, None) is None:
                self._gone[key] = lost

        for key, got in came.items():
            if self._gone.pop(key, None) is None:
                self._came[key] = got

    def statements(self) -> list[StatedChange]:
        """The changes that are about the subject and that the caller may see, a statement and what
        it became as one.
        """
        gone = self._visible(self._gone)
        came = self._visible(self._came)

        if self._question.statement:
            return self._first_statement(gone, came)

        stated = []
        for key, (sentence, change) in list(came.items()):
            if self._is_about(sentence, change.name):
                former = self._most_alike(sentence, change.name, gone)
                stated.append(
                    _state(
                        change,
                        sentence,
                        gone.pop(former) if former else None,
                    )
                )
                del came[key]

        for sentence, change in gone.values():
            if self._is_about(sentence, change.name):
                name = self._names.get(change.name, change.name)
                later = self._most_alike(sentence, name, came)
                now, got = came.pop(later) if later else ("", change)
                stated.append(_state(got, now, (sentence, change)))

        return stated

    def _visible(self, sentences: Sentences) -> Sentences:
        """Without those of pages that the question is not limited to; of a page that is gone nobody
        knows whether it was.
        """
        if self._view.only is None or self._view.only.is_open:
            return dict(sentences)

        ids = sorted({change.document for _, change in sentences.values()})
        outside = self._view.outside_documents(ids)
        return {key: pair for key, pair in sentences.items() if pair[1].document not in outside}

    def _first_statement(self, gone: Sentences, came: Sentences) -> list[StatedChange]:
        """The newest sentence that came and says what the question asks for."""
        sought = _stems(self._question.statement)
        best = max(
            came.values(),
            key=lambda pair: (len(sought & _stems(pair[0])), pair[1].at),
            default=None,
        )

        if best is None or 3 * len(sought & _stems(f"{best[0]} {best[1].name}")) < 2 * len(sought):
            return []

        former = self._most_alike(best[0], best[1].name, gone)
        return [
            _state(
                best[1],
                best[0],
                gone[former] if former else None,
            )
        ]

    def _is_about(self, sentence: str, name: str) -> bool:
        """Whether a sentence is, or its page, or the headings that a found passage has."""
        known = self._about.get((name, sentence))
        if known is None:
            is_statement = len(words(sentence)) >= _LEAST_WORDS and not sentence.startswith("#")
            known = (
                is_statement
                and self._may_tell(name, sentence)
                and self._question.is_about(
                    sentence,
                    _plain_name(name),
                    *self._headings(sentence, name),
                )
            )
            self._about[name, sentence] = known

        return known

    def _headings(self, sentence: str, name: str) -> list[str]:
        if not sentence.endswith((".", "!", "?")):
            return []  # rows of tables stand under many headings
        return [headings for text, headings in self._shown.get(name, ()) if sentence in text]

    def _most_alike(
        self,
        sentence: str,
        name: str,
        others: Sentences,
    ) -> str | None:
        """The key of the sentence of the same page that is another version of this one."""
        best = _ALIKE
        key = None
        own_words = words(sentence)
        matcher = SequenceMatcher(
            None,
            b=own_words,
            autojunk=False,
        )

        for other_key, (other, change) in others.items():
            if self._names.get(change.name, change.name) != name or self._view.turn.expired():
                continue

            matcher.set_seq1(words(other))
            if matcher.real_quick_ratio() >= best and matcher.quick_ratio() >= best:
                share = matcher.ratio()
                if share >= best:
                    best = share
                    key = other_key

        return key


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name)


def _key(sentence: str) -> str:
    return " ".join(sentence.casefold().translate(_NO_MARKS).split())


def _state(
    change: TextChange,
    now: str,
    former: tuple[str, TextChange] | None,
) -> StatedChange:
    """A statement with the state of the page that holds it, and the one that held what it was."""
    before, lost = former or ("", change)
    if not now:
        kind = "removed"
    elif before:
        kind = "changed"
    else:
        kind = "added"

    return StatedChange.model_validate(
        {
            "change": kind,
            "before": before,
            "now": now,
            "document": change.name,
            "document_id": change.document,
            "at": change.at,
            "before_state": _until(lost, before) if before else "",
            "now_state": _since(change, now) if now else "",
        }
    )


def _since(change: TextChange, sentence: str) -> str:
    return f"since {day(change.at)}{_marks(change.snapshot, change.commits.get(sentence, ''))}"


def _until(change: TextChange, sentence: str) -> str:
    marks = _marks(
        change.former_snapshot,
        change.commits.get(sentence, ""),
        "before ",
    )
    return f"until {day(change.at)}{marks}"


def _marks(snapshot: str, commit: str, before: str = "") -> str:
    marks = [f"snapshot {snapshot[:12]}"] if snapshot else []
    marks += [f"{before}commit {commit[:12]}"] if commit else []
    return f" ({', '.join(marks)})" if marks else ""


def _memory_changes(
    memory: MemorySearch,
    question: ChangeQuestion,
) -> list[StatedChange]:
    """The remembered topics about the subject that hold another state at the end of the time than
    at its beginning.
    """
    then, now = (_states(memory, question, moment) for moment in (question.start, question.end))

    stated = []
    for topic in sorted(then.keys() | now.keys()):
        old = then.get(topic)
        new = now.get(topic)
        if new is None or (old is not None and old.id == new.id):
            continue

        before = "" if old is None else old.text
        stated.append(
            StatedChange(
                change="changed" if before else "added",
                before=before,
                now=new.text,
                document=topic,
                document_id=new.id,
                at=as_moment(new.since.replace(" ", "T"), "since") or question.end,
                before_state=f"until {new.since} (memory {old.id})" if old else "",
                now_state=f"since {new.since} (memory {new.id})",
            )
        )

    return stated


def _states(
    memory: MemorySearch,
    question: ChangeQuestion,
    moment: datetime | None,
) -> dict[str, MemoryHit]:
    """The states of topics about the subject at a moment; none before everything."""
    if moment is None:
        return {}

    hits = memory.search(
        question.subject,
        None,
        "",
        Mask(moment),
        _MEMORY,
    )
    states = {}
    for hit in hits:
        if question.is_about(hit.text, hit.topic):
            states[hit.topic] = hit

    return states


def _find_holders(view: MeteredView, subject: str) -> dict[str, Numbers]:
    """The passages that hold each word of the subject."""
    holders = {}
    for word in content_words(subject):
        if stem(word) not in _NO_SUBJECT:
            holders[stem(word)] = view.lexical(
                word,
                kind=Kind.CHUNK,
                limit=_DEPTH,
            ).numbers

    return holders


def _report(
    question: ChangeQuestion,
    kept_since: datetime,
    statements: Sequence[StatedChange],
    mentions: int,
    is_cut: bool,
) -> ChangeReport:
    if question.subject:
        about = f" about {question.subject}"
    else:
        about = ""

    if question.start is None:
        start = ""
    else:
        start = f" since {day(question.start)}"

    if mentions == 1:
        mentioned = "1 passage mentions it"
    else:
        mentioned = f"{mentions} passages mention it"

    if question.statement and statements:
        sentence = "The statement came with this change."
    elif question.statement:
        sentence = f"No change that is kept brought this statement; {mentioned}."
    elif statements:
        counts = []
        for kind in ("changed", "added", "removed"):
            if count := sum(stated.change == kind for stated in statements):
                counts.append(f"{count} {kind}")

        sentence = f"What the documents say{about} changed{start}: {', '.join(counts)}."
    else:
        sentence = f"Nothing that the documents say{about} changed{start}; {mentioned}."

    if len(statements) > MAX_STATEMENTS:
        sentence += f" {MAX_STATEMENTS} are shown."
    if question.start is None or question.start < kept_since:
        sentence += f" Changes are known since {day(kept_since)}; what came before is not."
    if is_cut:
        sentence += " The plan's reads or time ran out before all changes were read."

    return ChangeReport(
        subject=question.subject,
        since=question.start,
        until=question.end,
        kept_since=kept_since,
        statements=tuple(statements[:MAX_STATEMENTS]),
        more=max(0, len(statements) - MAX_STATEMENTS),
        mentions=mentions,
        sentence=sentence,
    )


def quote_changes(
    report: ChangeReport,
) -> tuple[tuple[AnswerSource, ...], tuple[AnswerSentence, ...]]:
    """The states as sources, and the sentences that cite them."""
    sources: list[AnswerSource] = []
    sentences = [AnswerSentence(text=report.sentence, quote=report.sentence)]

    for stated in report.statements:
        cited = len(sources)
        for text, state in ((stated.before, stated.before_state), (stated.now, stated.now_state)):
            if text:
                sources.append(_source(len(sources) + 1, stated, text, state))

        numbers = tuple(range(cited + 1, len(sources) + 1))
        text = _OUTCOME[stated.change].format(
            before=stated.before,
            now=stated.now,
        )
        sentences.append(
            AnswerSentence(
                text=f"{stated.document}: {text}",
                citations=numbers,
                quote=text,
            )
        )

    return tuple(sources), tuple(sentences)


_OUTCOME = {
    "changed": "“{before}” became “{now}”",
    "added": "“{now}” was added",
    "removed": "“{before}” was removed",
}


def _source(
    number: int,
    stated: StatedChange,
    text: str,
    state: str,
) -> AnswerSource:
    return AnswerSource(
        number=number,
        kind="state",
        rank=number,
        id=stated.document_id or stated.document,
        document=stated.document,
        title=stated.document,
        where=state,
        text=text,
        markdown=text,
    )


def _subject_stems(subject: str) -> list[str]:
    """The words of a subject as they are compared, in order."""
    return [word for word in map(stem, content_words(subject)) if word not in _NO_SUBJECT]


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text)))
