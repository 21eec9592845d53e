"""Questions with known answers, written from what a corpus says: no language model and no labels.

A passage that would give the answer away is hidden while its question is asked. Everything is
chosen by hashes of content: the same corpus gives the same exam.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Self

from hades.text.blocks import BlockKind, inline_markdown, plain_words, read_blocks, strip_marks
from hades.text.sentences import documentation_sentences, sentences_of
from hades.text.word_lists import FUNCTION_WORDS
from hades.text.words import spans, split_identifier, stem_word, words
from schemas.ids import sha256_text
from schemas.nodes import CHANGED_FILES, CODE_KINDS, ChunkKind

# What a kind counts. Those of `QUOTATIONS` ask in the answer's own words, by which it is found as
# people's questions do not find it: they are written where a corpus has little else, and nothing is
# fitted to them.
KINDS: Mapping[str, float] = {
    "heading": 0.25,
    "opening": 0.25,
    "definition": 0.25,
    "docstring": 0.25,
    "acronym": 1.0,
    "commit": 1.0,
    "mention": 1.0,
    "link": 1.5,
    "citation": 1.5,
    "names": 1.5,
    "judged": 2.0,
}
QUOTATIONS = frozenset({"heading", "opening", "definition", "docstring"})
PassageIds = tuple[str, ...]
MOST_QUESTIONS, ENOUGH = 400, 100
MOST_MENTIONS = 3  # of a section
MOST_DRAFTS = 1_200  # of a kind; of a large corpus no more is read than gives these
HELD_EVERY, UNANSWERABLE_EVERY = 3, 5
_LEAST_WORDS, _MOST_WORDS = 4, 40  # of a question; the least counts words with meaning
_SAMPLE = 2_000  # passages by which it is told how common a word is
_MOST_FILES = 4  # of a commit that is asked for; wider ones are about no file in particular


@dataclass(frozen=True)
class ExamPassage:
    """A passage as the exam reads it; `origin` is the path or id of its document, `start` where it
    begins there.
    """

    id: str
    document: str
    origin: str
    title: str
    headings: tuple[str, ...]
    text: str
    kind: ChunkKind
    symbol: str = ""
    start: int = 0

    @property
    def section(self) -> tuple[str, ...]:
        """What it stands in: a heading of its document, a symbol of it, or the document as a
        whole.
        """
        return (self.document, *self.headings, self.symbol)

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences of its paragraphs and items of lists, as they are written."""
        written: list[str] = []
        for block in read_blocks(self.text):
            if block.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM):
                written += sentences_of(" ".join(block.source.split()))

        return written

    @cached_property
    def plain_sentences(self) -> list[str]:
        """All of its sentences, without markup."""
        return sentences_of(plain_words(self.text))


@dataclass(frozen=True)
class StatedLink:
    """A link that a document states: the origin of its target, and the sentences that make it.

    `section` is the heading of the target that is meant, "" for all of it; `is_reference`: it leads
    a reader there and cites nothing.
    """

    document: str
    target: str
    sentences: tuple[str, ...]
    section: str = ""
    is_reference: bool = False


@dataclass(frozen=True)
class Draft:
    """A question before it is chosen. Each part of `gold` names the passages that serve; all parts
    are wanted.

    `hidden` are passages that nobody may find.
    """

    kind: str
    text: str
    gold: tuple[PassageIds, ...]
    hidden: PassageIds = ()


@dataclass(frozen=True, kw_only=True)
class ExamQuestion(Draft):
    """A question. Where it is not to be answered, the passages of the answer are among the hidden
    ones.

    `is_held`: it judges what was fitted and is never fitted to.
    """

    key: str
    weight: float = 1.0
    is_held: bool = False
    is_answerable: bool = True

    @classmethod
    def of_draft(cls, draft: Draft, key: str, weight: float) -> Self:
        """A draft that was chosen; whether it is held out depends on its key alone."""
        return cls(
            **vars(draft),
            key=key,
            weight=weight,
            is_held=int(key[:8], 16) % HELD_EVERY == 0,
        )

    def without(self, passages: Iterable[str]) -> Self:
        """The question with these passages hidden too, so that it is not to be answered."""
        hidden = tuple(dict.fromkeys((*self.hidden, *passages)))
        key = sha256_text(f"without {self.key}")
        return replace(
            self,
            key=key,
            hidden=hidden,
            is_answerable=False,
        )


_RELEASE = re.compile(
    r"^\W*(?:version |release |v)?\d+\.\d|change ?log|release (?:notes|history)|unreleased",
    re.I,
)


class Corpus:
    """The passages by document, by section and by title, in an order that only their content
    decides.
    """

    def __init__(
        self,
        passages: Iterable[ExamPassage],
        links: Sequence[StatedLink] = (),
    ) -> None:
        self.passages = sorted(
            passages,
            key=lambda passage: sha256_text(passage.text + passage.origin),
        )
        self.links = links
        self.documents: dict[str, list[ExamPassage]] = defaultdict(list)
        self.askable = [passage for passage in self.passages if self.is_askable(passage)]

        self.sections: dict[tuple[str, ...], list[ExamPassage]] = defaultdict(list)
        for passage in self.passages:
            self.documents[passage.document].append(passage)

        for passage in self.askable:
            self.sections[passage.section].append(passage)

        for group in (*self.documents.values(), *self.sections.values()):
            group.sort(key=lambda passage: (passage.start, passage.id))

        self.origins = {members[0].origin: document for document, members in self.documents.items()}
        self.counts = Counter[str]()  # passages that hold a word
        for passage in self.passages[:_SAMPLE]:
            self.counts.update(_stems(passage.text))

        named: dict[str, list[str]] = defaultdict(list)
        for document, group in self.documents.items():
            named[_name(group[0].title)].append(document)

        self.titles: dict[str, str] = {}
        for name, documents in named.items():
            if len(name) > 3 and len(documents) == 1:
                self.titles[name] = documents[0]

    def ids(self, *documents: str) -> PassageIds:
        """The passages of documents, in this order."""
        return _ids(chain.from_iterable(self.documents[document] for document in documents))

    def is_askable(self, passage: ExamPassage) -> bool:
        """Whether somebody would ask for a passage: nobody asks what changed in a release."""
        return not any(_RELEASE.search(title) for title in (passage.title, *passage.headings))

    def section_ids(self, passage: ExamPassage) -> PassageIds:
        """The passages of the section that a passage stands in."""
        return _ids(self.sections[passage.section])


def write_exam(
    corpus: Corpus,
    judged: Iterable[Draft] = (),
    most: int = MOST_QUESTIONS,
) -> list[ExamQuestion]:
    """At most `most` questions, quotations only until there are `ENOUGH`; beside them some whose
    answer is hidden.
    """
    drafts: list[Draft] = []
    for write in _KINDS:
        drafts += islice(filter(_can_be_asked, write(corpus)), MOST_DRAFTS)

    drafts += judged
    text_counts = Counter(_plain(draft.text) for draft in drafts)

    unique = []
    for draft in drafts:
        if text_counts[_plain(draft.text)] == 1:
            unique.append(draft)

    ranked = _rank_drafts(unique)
    chosen = [question for question in ranked if question.kind not in QUOTATIONS][:most]
    quoted = [question for question in ranked if question.kind in QUOTATIONS]
    chosen += quoted[: max(0, min(most, ENOUGH) - len(chosen))]
    return sorted(
        [*chosen, *_unanswerable(corpus, chosen)],
        key=lambda question: question.key,
    )


def _rank_drafts(drafts: Sequence[Draft]) -> list[ExamQuestion]:
    """Drafts as questions: within a kind by key, the kinds mixed by what each counts."""
    ranked: list[tuple[float, str, ExamQuestion]] = []
    for kind, weight in KINDS.items():
        of_kind = {}
        for draft in drafts:
            if draft.kind == kind:
                of_kind[sha256_text(kind + draft.text)] = draft

        for place, key in enumerate(sorted(of_kind)):
            question = ExamQuestion.of_draft(of_kind[key], key, weight)
            ranked.append((place / weight, key, question))

    return [question for _, _, question in sorted(ranked, key=lambda entry: entry[:2])]


def _unanswerable(
    corpus: Corpus,
    questions: Sequence[ExamQuestion],
) -> Iterator[ExamQuestion]:
    """Some of the questions again, with the documents that answer them hidden."""
    owner = {}
    for passage in corpus.passages:
        owner[passage.id] = passage.document

    for question in questions:
        if int(question.key[8:16], 16) % UNANSWERABLE_EVERY:
            continue

        gold = chain.from_iterable(question.gold)
        documents = dict.fromkeys(owner[passage] for passage in gold if passage in owner)
        lacking = question.without(corpus.ids(*documents))

        if len(lacking.hidden) < len(corpus.passages):
            yield lacking


def _can_be_asked(draft: Draft) -> bool:
    if draft.kind in ("heading", "acronym", "judged"):
        least = 2
    else:
        least = _LEAST_WORDS

    is_short = len(words(draft.text)) <= _MOST_WORDS
    return all(draft.gold) and least <= len(_meaningful(draft.text)) and is_short


# One function a kind. They yield questions as the passages come, so that a large corpus need not be
# read to its end.


def ask_headings(corpus: Corpus) -> Iterator[Draft]:
    """The heading asks for its section, without the word that the section says most often."""
    for section in corpus.sections.values():
        headings = section[0].headings
        if not headings:
            continue

        heading_words = list(dict.fromkeys(_meaningful(plain_words(headings[-1]))))
        if len(heading_words) < 2:
            continue

        text = " ".join(passage.text for passage in section)
        stem_counts = Counter(map(stem_word, words(text)))
        dropped = max(heading_words, key=lambda word: (stem_counts[stem_word(word)], word))
        kept_words = [word for word in heading_words if word != dropped]
        words_above = _meaningful(plain_words(" ".join(headings[-2:-1])))
        above = [word for word in words_above if word not in heading_words]
        yield Draft(
            "heading",
            f"how about {' '.join([*above, *kept_words])}?",
            (_ids(section),),
        )


def ask_openings(corpus: Corpus) -> Iterator[Draft]:
    """The first sentence of a section asks for it, without the words of its heading and the rarer
    half of the others.

    People ask in common words; a quotation of rare ones would be found by them alone.
    """
    for section in corpus.sections.values():
        opening = section[0]
        if opening.kind in CODE_KINDS or opening.kind is ChunkKind.COMMIT:
            continue

        heading_stems = _stems(" ".join((opening.title, *opening.headings)))
        sentences = map(_meaningful, opening.plain_sentences)
        sentence_words = dict.fromkeys(next((found for found in sentences if len(found) > 5), ()))
        unnamed = [word for word in sentence_words if stem_word(word) not in heading_stems][:16]
        by_frequency = sorted(
            unnamed,
            key=lambda word: (-corpus.counts[stem_word(word)], word),
        )
        common = by_frequency[: (len(unnamed) + 1) // 2]
        text = " ".join(word for word in unnamed if word in common)
        yield Draft("opening", f"{text}?", (_ids(section),))


_DEFINES = re.compile(
    r"(?P<subject>[^.,;:]{2,60}?)(?:\s*\([^)]*\),?)? (?P<verb>is|are|was|were) "
    r"(?P<rest>(?:an?|the|one) .+)"
)


def ask_definitions(corpus: Corpus) -> Iterator[Draft]:
    """What a passage says that its subject is, without the subject's name."""
    for passage in corpus.askable:
        heading_stems = _stems(" ".join((passage.title, *passage.headings[-1:])))
        for sentence in passage.plain_sentences[:3]:
            match = _DEFINES.match(sentence)
            if match is None:
                continue

            subject_stems = _stems(match["subject"])
            if heading_stems.isdisjoint(subject_stems):
                continue

            predicate = _words_without(match["rest"].rstrip("."), heading_stems | subject_stems)
            text = f"what {match['verb']} {predicate}?"
            yield Draft(
                "definition",
                text,
                (corpus.section_ids(passage),),
            )
            break


_LONG_AND_SHORT = re.compile(
    r"\b((?:[A-Z][\w-]*,? (?:(?:of|and|for|the|in) )*){1,5}[A-Z][\w-]*) \(([A-Z]{2,6})s?\)"
)


def ask_acronyms(corpus: Corpus) -> Iterator[Draft]:
    """An acronym asks for the passages that spell it out."""
    places: dict[str, list[str]] = defaultdict(list)
    for passage in corpus.passages:
        for long, short in set(_LONG_AND_SHORT.findall(passage.text)):
            if "".join(letter for letter in long if letter.isupper()).endswith(short):
                places[short].append(passage.id)

    for short, passage_ids in places.items():
        yield Draft(
            "acronym",
            f"what does {short} stand for?",
            (tuple(passage_ids),),
        )


def ask_docstrings(corpus: Corpus) -> Iterator[Draft]:
    """What a docstring says asks for its function or class, without the words of its name."""
    for passage in corpus.passages:
        if not passage.symbol or passage.kind not in CODE_KINDS:
            continue

        name_parts = split_identifier(passage.symbol.rpartition(".")[2])
        name_stems = {stem_word(part.lower()) for part in name_parts}
        doc_spans = documentation_sentences(passage.text)

        if doc_spans:
            sentence = passage.text[slice(*doc_spans[0])]
        else:
            sentence = ""

        text = f"where is this done: {_words_without(sentence, name_stems)}"
        yield Draft(
            "docstring",
            text,
            (corpus.section_ids(passage),),
        )


def ask_commits(corpus: Corpus) -> Iterator[Draft]:
    """The first line of a commit's message asks for the files that it changed; the commit itself is
    hidden.
    """
    for passage in corpus.passages:
        message, changed, files = passage.text.partition(CHANGED_FILES)
        if passage.kind is not ChunkKind.COMMIT or not changed:
            continue

        paths = re.split(r"[,\s]+", files.strip())
        documents = []
        for path in paths:
            if path in corpus.origins:
                documents.append(corpus.origins[path])

        if 0 < len(documents) <= _MOST_FILES:
            first_line = message.strip().partition("\n")[0]
            yield Draft(
                "commit",
                first_line,
                (corpus.ids(*documents),),
                (passage.id,),
            )


_LINK = re.compile(
    r"(?<!!)\[[^\]\[]+\]\(([^)\s]+)\)|(?::(?:ref|doc):|\{(?:ref|doc)\})`(?:[^`<]*<)?([^`<>]+)>?`"
)
_LABEL = re.compile(r"(?m)^\s*(?:\.\. _([^:\n]+):|\(([\w-]+)\)=)\s*$")


def ask_links(corpus: Corpus) -> Iterator[Draft]:
    """A sentence with a link asks for what it leads to; the passage that holds the sentence is
    hidden.
    """
    labels: dict[str, PassageIds] = {}
    for passage in corpus.askable:
        for match in _LABEL.finditer(passage.text):
            label = (match[1] or match[2]).strip("`").lower()
            labels[label] = _after(corpus, passage, match.end())

    for passage in corpus.askable:
        for sentence in passage.sentences:
            for path, label in _LINK.findall(sentence):
                target = labels.get(label.lower()) or _target(corpus, passage, path or label)
                if target is not None and passage.id not in target:
                    yield Draft(
                        "link",
                        _spoken(sentence),
                        (target,),
                        (passage.id,),
                    )

    for link in _ordered(corpus.links):
        target = _section(corpus, link)
        for sentence in link.sentences if link.is_reference and target else ():
            hidden = _holding(corpus, link.document, sentence)
            if hidden and not set(hidden).intersection(target):
                yield Draft("link", _spoken(sentence), (target,), hidden)


_CODE_NAME = re.compile(r"\w[_/.()=-]|--|[a-z][A-Z]")


def ask_mentions(corpus: Corpus) -> Iterator[Draft]:
    """A sentence that names what another section is headed by asks for that section, without the
    name, where what is left can be asked.

    The passage that holds the sentence is hidden. A heading of one common word names nothing.
    """
    targets = _sections_by_name(corpus)
    first = {name.partition(" ")[0] for name in targets}
    mentions = Counter[PassageIds]()

    for passage in corpus.passages if targets else ():
        for sentence in map(_spoken, passage.sentences):
            runs = (run for run in _runs(sentence, first) if run[0] in targets)
            name, start, end = next(runs, ("", 0, 0))
            target = targets.get(name, ())

            if target and passage.id not in target and mentions[target] < MOST_MENTIONS:
                question = _without_name(sentence[:start], sentence[end:])
                mentions[target] += bool(question)
                yield Draft("mention", question, (target,), (passage.id,))


def _sections_by_name(corpus: Corpus) -> dict[str, PassageIds]:
    """The sections whose heading names them and no other section, by that name."""
    sections: dict[str, list[PassageIds]] = defaultdict(list)
    for section in corpus.sections.values():
        if section[0].headings:
            heading = _spoken(section[0].headings[-1])
        else:
            heading = ""

        if len(_meaningful(heading)) > 1 or (len(heading) > 3 and _CODE_NAME.search(heading)):
            sections[_name(heading)].append(_ids(section))

    by_name = {}
    for name, passages in sections.items():
        if len(passages) == 1:
            by_name[name] = passages[0]

    return by_name


_ARTICLES = frozenset(("a", "an", "the"))
# Words that a name can be left out behind when a noun follows: "passed to the ... function".
_BEFORE_NOUN = frozenset(
    """
    this that these those each every any some no its their your our his her my another such
    for of by with from in on via through using
    """.split()  # noqa: SIM905
)
_VERBS = frozenset(
    """
    is are was were has have had does do did can could will would may might must should
    """.split()  # noqa: SIM905
)
# What follows a noun at the end of its phrase: a mark, or a word without meaning of its own.
_PHRASE_END = re.compile(
    rf"\W*$|[,;:.!?)]|\W+(?:{'|'.join(sorted(FUNCTION_WORDS))})\b",
    re.I,
)
_NEXT_WORD = re.compile(r" (?P<word>[A-Za-z][\w-]*)")


def _without_name(text_before: str, text_after: str) -> str:
    """What is left of a sentence around a name, as a question; "" where nobody could ask that.

    A name that does something becomes "what"; one that only says of which kind a noun is goes. Any
    other name leaves a hole.
    """
    following = _NEXT_WORD.match(text_after)
    if following is None:
        return ""

    word = following["word"].lower()
    head = text_before.lower().split()
    is_third_person = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3

    if not head or (len(head) == 1 and head[0] in _ARTICLES):  # the name is the subject
        is_verb = word in _VERBS or is_third_person
        return f"what{text_after.rstrip('.!: ')}?" if is_verb else ""

    is_verb = word in _VERBS or word.endswith(("ed", "ing"))
    if is_verb or word in FUNCTION_WORDS or not _PHRASE_END.match(text_after[following.end() :]):
        return ""

    last = head[-1]
    is_verbal = last.endswith("ing") and len(head) > 1
    precedes_noun = last in _BEFORE_NOUN and not is_third_person

    if not (last in _ARTICLES or is_verbal or precedes_noun):
        return ""

    return " ".join(f"{text_before} {text_after}".split())


def ask_citations(corpus: Corpus) -> Iterator[Draft]:
    """A sentence that cites a document asks for it; passages that hold the sentence are hidden."""
    for link in _ordered(corpus.links):
        target = corpus.origins.get(link.target)
        if link.is_reference or target is None or target == link.document:
            continue

        for sentence in link.sentences[:1]:
            hidden = _holding(corpus, link.document, sentence)
            yield Draft(
                "citation",
                _spoken(sentence),
                (corpus.ids(target),),
                hidden,
            )


def _ordered(links: Sequence[StatedLink]) -> list[StatedLink]:
    return sorted(
        links,
        key=lambda link: sha256_text(link.document + link.target + link.section),
    )


def _holding(
    corpus: Corpus,
    document: str,
    sentence: str,
) -> PassageIds:
    """The passages of a document that hold a sentence."""
    passages = corpus.documents.get(document, ())
    beginning = sentence[:60]
    return _ids(passage for passage in passages if beginning in " ".join(passage.text.split()))


def _section(corpus: Corpus, link: StatedLink) -> PassageIds:
    """The passages that a link leads to: of the section that it means, or of the whole document."""
    document = corpus.origins.get(link.target)
    if document is None:
        return ()
    if not link.section:
        return corpus.ids(document)

    passages = corpus.documents[document]
    return _ids(passage for passage in passages if link.section in passage.headings[-1:])


def ask_names(corpus: Corpus) -> Iterator[Draft]:
    """A sentence that names two other documents asks for both; the passage that holds it is
    hidden.
    """
    first = {name.partition(" ")[0] for name in corpus.titles}
    for passage in corpus.passages if first else ():
        for sentence in passage.plain_sentences:
            runs = (name for name, start, _ in _runs(sentence, first) if sentence[start].isupper())
            documents = dict.fromkeys(corpus.titles[name] for name in runs if name in corpus.titles)
            documents.pop(passage.document, None)

            if len(documents) == 2:
                yield Draft(
                    "names",
                    sentence,
                    tuple(map(corpus.ids, documents)),
                    (passage.id,),
                )
                break


_KINDS: tuple[Callable[[Corpus], Iterator[Draft]], ...] = (
    ask_headings,
    ask_openings,
    ask_definitions,
    ask_acronyms,
    ask_docstrings,
    ask_commits,
    ask_links,
    ask_mentions,
    ask_citations,
    ask_names,
)


def _spoken(sentence: str) -> str:
    return strip_marks(inline_markdown(sentence))


def _target(
    corpus: Corpus,
    passage: ExamPassage,
    path: str,
) -> PassageIds | None:
    """The passages that a path leads to: those of the section that its anchor names, or of the
    whole document.
    """
    file, _, anchor = path.partition("#")
    name = passage.origin

    if file:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))

    documents = map(corpus.origins.get, (name, f"{name}.md", f"{name}.rst"))
    document = next(filter(None, documents), None)
    if document is None:
        return None

    headed: list[ExamPassage] = []
    for member in corpus.documents[document]:
        if member.headings and "-".join(words(member.headings[-1])) == anchor.lower():
            headed.append(member)

    return _ids(headed) or (corpus.ids(document) if file and not anchor else None)


def _after(
    corpus: Corpus,
    passage: ExamPassage,
    end: int,
) -> PassageIds:
    """The section that begins behind a label: in the same passage where it says more, else the next
    one.
    """
    if len(passage.text) - end > 10:
        return corpus.section_ids(passage)

    passages = corpus.documents[passage.document]
    following = passages[passages.index(passage) + 1 :] or passages[-1:]
    return corpus.section_ids(following[0])


def _ids(passages: Iterable[ExamPassage]) -> PassageIds:
    return tuple(passage.id for passage in passages)


def _stems(text: str) -> set[str]:
    return set(map(stem_word, words(text)))


def _words_without(text: str, stems: set[str]) -> str:
    """The words of a text, without those of a name."""
    return " ".join(word for word in text.split() if not _is_named(word, stems))


def _runs(sentence: str, first: set[str]) -> Iterator[tuple[str, int, int]]:
    """Runs of at most five words that begin with one of the `first`, folded, with their place;
    longer ones first.
    """
    if first.isdisjoint(words(sentence)):
        return

    places = spans(sentence)
    folded = [_plain(sentence[start:end]) for start, end in places]
    for place, (start, _) in enumerate(places):
        if folded[place] in first:
            for end in range(min(place + 5, len(places)), place, -1):
                yield " ".join(folded[place:end]), start, places[end - 1][1]


def _name(title: str) -> str:
    return _plain(re.sub(r"\s*\([^)]*\)$", "", title))


def _plain(text: str) -> str:
    return " ".join(words(text))


def _meaningful(text: str) -> list[str]:
    return [word for word in words(text) if word not in FUNCTION_WORDS and len(word) > 1]


def _is_named(word: str, stems: set[str]) -> bool:
    parts = words(word)
    return bool(parts) and all(stem_word(part) in stems for part in parts)
