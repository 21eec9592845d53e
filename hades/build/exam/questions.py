"""Questions with known answers, written from what a corpus says: no language model and no labels.

A passage that would give the answer away is hidden while its question is asked. Everything is chosen by hashes of
content: the same corpus gives the same exam."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from hades.text.blocks import BlockKind, inline_markdown, plain_words, read_blocks, strip_marks
from hades.text.sentences import documentation_sentences, sentences_of
from hades.text.word_lists import FUNCTION_WORDS
from hades.text.words import spans, split_identifier, stem_word, words
from schemas.ids import sha256_text
from schemas.nodes import CHANGED_FILES, CODE_KINDS, ChunkKind

# What a kind counts. Those of `QUOTATIONS` ask in the answer's own words, by which it is found as people's questions do
# not find it: they are written where a corpus has little else, and nothing is fitted to them.
KINDS: Mapping[str, float] = {
    "heading": 0.25, "opening": 0.25, "definition": 0.25, "docstring": 0.25,
    "acronym": 1.0, "commit": 1.0, "mention": 1.0, "link": 1.5, "citation": 1.5, "names": 1.5, "judged": 2.0,
}  # fmt: skip
QUOTATIONS = frozenset({"heading", "opening", "definition", "docstring"})
MOST_QUESTIONS, ENOUGH = 400, 100
MOST_MENTIONS = 3  # of a section
MOST_DRAFTS = 1_200  # of a kind; of a large corpus no more is read than gives these
HELD_EVERY, UNANSWERABLE_EVERY = 3, 5
_LEAST_WORDS, _MOST_WORDS = 4, 40  # of a question; the least counts words with meaning
_SAMPLE = 2_000  # passages by which it is told how common a word is
_MOST_FILES = 4  # of a commit that is asked for; wider ones are about no file in particular


@dataclass(frozen=True)
class ExamPassage:
    """A passage as the exam reads it; `origin` is the path or id of its document, `start` where it begins there."""

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
        """What it stands in: a heading of its document, a symbol of it, or the document as a whole."""
        return (self.document, *self.headings, self.symbol)

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences of its paragraphs and items of lists, as they are written."""
        prose = (one for one in read_blocks(self.text) if one.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM))
        return [each for one in prose for each in sentences_of(" ".join(one.source.split()))]

    @cached_property
    def plain_sentences(self) -> list[str]:
        """All of its sentences, without markup."""
        return sentences_of(plain_words(self.text))


@dataclass(frozen=True)
class StatedLink:
    """A link that a document states: the origin of its target, and the sentences that make it."""

    document: str
    target: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Draft:
    """A question before it is chosen. Each part of `gold` names the passages that serve; all parts are wanted.

    `hidden` are passages that nobody may find.
    """

    kind: str
    text: str
    gold: tuple[tuple[str, ...], ...]
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExamQuestion(Draft):
    """A question. Where it is not to be answered, the passages of the answer are among the hidden ones.

    `is_held`: it judges what was fitted and is never fitted to.
    """

    key: str
    weight: float = 1.0
    is_held: bool = False
    is_answerable: bool = True


_RELEASE = re.compile(r"^\W*(?:version |release |v)?\d+\.\d|change ?log|release (?:notes|history)|unreleased", re.I)


class Corpus:
    """The passages by document, by section and by title, in an order that only their content decides."""

    def __init__(self, passages: Iterable[ExamPassage], links: Sequence[StatedLink] = ()) -> None:
        self.passages = sorted(passages, key=lambda one: sha256_text(one.text + one.origin))
        self.links = links
        self.documents: dict[str, list[ExamPassage]] = defaultdict(list)
        self.asked = [one for one in self.passages if self.is_asked(one)]
        self.sections: dict[tuple[str, ...], list[ExamPassage]] = defaultdict(list)
        for one in self.passages:
            self.documents[one.document].append(one)
        for one in self.asked:
            self.sections[one.section].append(one)
        for held in (*self.documents.values(), *self.sections.values()):
            held.sort(key=lambda one: (one.start, one.id))
        self.origins = {held[0].origin: document for document, held in self.documents.items()}
        sample = (set(map(stem_word, words(one.text))) for one in self.passages[:_SAMPLE])
        self.counts = Counter(word for held in sample for word in held)  # passages that hold a word
        titles = Counter(_name(held[0].title) for held in self.documents.values())
        self.titles = {
            name: document
            for document, held in self.documents.items()
            if len(name := _name(held[0].title)) > 3 and titles[name] == 1
        }

    def ids(self, document: str) -> tuple[str, ...]:
        """The passages of a document."""
        return tuple(one.id for one in self.documents[document])

    def is_asked(self, passage: ExamPassage) -> bool:
        """Whether somebody would ask for a passage: nobody asks what changed in a release."""
        return not any(_RELEASE.search(one) for one in (passage.title, *passage.headings))

    def section_ids(self, passage: ExamPassage) -> tuple[str, ...]:
        """The passages of the section that a passage stands in."""
        return tuple(one.id for one in self.sections[passage.section])


def write_exam(corpus: Corpus, judged: Iterable[Draft] = (), most: int = MOST_QUESTIONS) -> list[ExamQuestion]:
    """At most `most` questions, quotations only until there are `ENOUGH`; beside them some whose answer is hidden."""
    drafts = [one for write in _KINDS for one in islice(filter(_can_be_asked, write(corpus)), MOST_DRAFTS)]
    spoken = Counter(_plain(one.text) for one in (*drafts, *judged))
    unique = [one for one in (*drafts, *judged) if spoken[_plain(one.text)] == 1]
    ranked: list[tuple[float, str, Draft]] = []
    for kind, weight in KINDS.items():
        own = sorted((sha256_text(one.kind + one.text), one) for one in unique if one.kind == kind)
        ranked += [(place / weight, key, one) for place, (key, one) in enumerate(own)]
    ranked.sort(key=lambda one: one[:2])
    chosen = [one for one in ranked if one[2].kind not in QUOTATIONS][:most]
    quoted = [one for one in ranked if one[2].kind in QUOTATIONS]
    chosen += quoted[: max(0, min(most, ENOUGH) - len(chosen))]
    questions = [
        ExamQuestion(**vars(one), key=key, weight=KINDS[one.kind], is_held=int(key[:8], 16) % HELD_EVERY == 0)
        for _, key, one in chosen
    ]
    return sorted([*questions, *_unanswerable(corpus, questions)], key=lambda one: one.key)


def _unanswerable(corpus: Corpus, questions: Sequence[ExamQuestion]) -> Iterator[ExamQuestion]:
    """Some of the questions again, with the documents that answer them hidden."""
    owner = {one.id: one.document for one in corpus.passages}
    for one in questions:
        if int(one.key[8:16], 16) % UNANSWERABLE_EVERY == 0:
            documents = dict.fromkeys(owner[passage] for part in one.gold for passage in part if passage in owner)
            hidden = tuple(dict.fromkeys((*one.hidden, *(each for name in documents for each in corpus.ids(name)))))
            if len(hidden) < len(corpus.passages):
                yield replace(one, key=sha256_text(f"without {one.key}"), hidden=hidden, is_answerable=False)


def _can_be_asked(draft: Draft) -> bool:
    least = 2 if draft.kind in ("heading", "acronym", "judged") else _LEAST_WORDS
    return bool(all(draft.gold)) and least <= len(_meaningful(draft.text)) and len(words(draft.text)) <= _MOST_WORDS


# One function a kind. They yield questions as the passages come, so that a large corpus need not be read to its end.


def ask_headings(corpus: Corpus) -> Iterator[Draft]:
    """The heading asks for its section, without the word that the section says most often."""
    for held in corpus.sections.values():
        if not held[0].headings:
            continue
        own = list(dict.fromkeys(_meaningful(plain_words(held[0].headings[-1]))))
        said = Counter(map(stem_word, words(" ".join(one.text for one in held))))
        if len(own) > 1:
            dropped = max(own, key=lambda word: (said[stem_word(word)], word))
            rest = [word for word in own if word != dropped]
            above = [word for word in _meaningful(plain_words(" ".join(held[0].headings[-2:-1]))) if word not in own]
            yield Draft("heading", f"how about {' '.join([*above, *rest])}?", (corpus.section_ids(held[0]),))


def ask_openings(corpus: Corpus) -> Iterator[Draft]:
    """The first sentence of a section asks for it, without the words of its heading and the rarer half of the others.

    People ask in common words; a quotation of rare ones would be found by them alone.
    """
    for held in corpus.sections.values():
        if held[0].kind in CODE_KINDS or held[0].kind is ChunkKind.COMMIT:
            continue
        named = set(map(stem_word, words(" ".join((held[0].title, *held[0].headings)))))
        sentence = next((one for one in held[0].plain_sentences if len(_meaningful(one)) > 5), "")
        kept = [word for word in dict.fromkeys(_meaningful(sentence)) if stem_word(word) not in named][:16]
        common = sorted(kept, key=lambda word: (-corpus.counts[stem_word(word)], word))[: (len(kept) + 1) // 2]
        yield Draft("opening", f"{' '.join(word for word in kept if word in common)}?", (corpus.section_ids(held[0]),))


_DEFINES = re.compile(
    r"(?P<subject>[^.,;:]{2,60}?)(?:\s*\([^)]*\),?)? (?P<verb>is|are|was|were) (?P<rest>(?:an?|the|one) .+)"
)


def ask_definitions(corpus: Corpus) -> Iterator[Draft]:
    """What a passage says that its subject is, without the subject's name."""
    for passage in corpus.asked:
        named = set(map(stem_word, words(" ".join((passage.title, *passage.headings[-1:])))))
        for sentence in passage.plain_sentences[:3]:
            found = _DEFINES.match(sentence)
            if found and named.intersection(map(stem_word, words(found["subject"]))):
                gone = named.union(map(stem_word, words(found["subject"])))
                rest = " ".join(word for word in found["rest"].rstrip(".").split() if not _is_named(word, gone))
                yield Draft("definition", f"what {found['verb']} {rest}?", (corpus.section_ids(passage),))
                break


_LONG_AND_SHORT = re.compile(r"\b((?:[A-Z][\w-]*,? (?:(?:of|and|for|the|in) )*){1,5}[A-Z][\w-]*) \(([A-Z]{2,6})s?\)")


def ask_acronyms(corpus: Corpus) -> Iterator[Draft]:
    """An acronym asks for the passages that spell it out."""
    places: dict[str, list[str]] = defaultdict(list)
    for passage in corpus.passages:
        for long, short in set(_LONG_AND_SHORT.findall(passage.text)):
            if "".join(letter for letter in long if letter.isupper()).endswith(short):
                places[short].append(passage.id)
    for short, held in places.items():
        yield Draft("acronym", f"what does {short} stand for?", (tuple(held),))


def ask_docstrings(corpus: Corpus) -> Iterator[Draft]:
    """What a docstring says asks for its function or class, without the words of its name."""
    for passage in corpus.passages:
        if passage.symbol and passage.kind in CODE_KINDS:
            told = documentation_sentences(passage.text)
            named = {stem_word(part.lower()) for part in split_identifier(passage.symbol.rpartition(".")[2])}
            said = passage.text[slice(*told[0])].split() if told else []
            rest = " ".join(word for word in said if not _is_named(word, named))
            yield Draft("docstring", f"where is this done: {rest}", (corpus.section_ids(passage),))


def ask_commits(corpus: Corpus) -> Iterator[Draft]:
    """The first line of a commit's message asks for the files that it changed; the commit itself is hidden."""
    for passage in corpus.passages:
        message, changed, files = passage.text.partition(CHANGED_FILES)
        if passage.kind is ChunkKind.COMMIT and changed:
            held = [corpus.origins[one] for one in re.split(r"[,\s]+", files.strip()) if one in corpus.origins]
            if 0 < len(held) <= _MOST_FILES:
                gold = tuple(each for one in held for each in corpus.ids(one))
                yield Draft("commit", message.strip().partition("\n")[0], (gold,), (passage.id,))


_LINK = re.compile(r"(?<!!)\[[^\]\[]+\]\(([^)\s]+)\)|(?::(?:ref|doc):|\{(?:ref|doc)\})`(?:[^`<]*<)?([^`<>]+)>?`")
_LABEL = re.compile(r"(?m)^\s*(?:\.\. _([^:\n]+):|\(([\w-]+)\)=)\s*$")


def ask_links(corpus: Corpus) -> Iterator[Draft]:
    """A sentence with a link asks for what it leads to; the passage that holds the sentence is hidden."""
    labels = {
        (found[1] or found[2]).strip("`").lower(): _after(corpus, passage, found.end())
        for passage in corpus.asked
        for found in _LABEL.finditer(passage.text)
    }
    for passage in corpus.asked:
        for sentence in passage.sentences:
            for path, label in _LINK.findall(sentence):
                target = labels.get(label.lower()) or _target(corpus, passage, path or label)
                if target is not None and passage.id not in target:
                    yield Draft("link", _spoken(sentence), (target,), (passage.id,))


_CODE_NAME = re.compile(r"\w[_/.()=-]|--|[a-z][A-Z]")


def ask_mentions(corpus: Corpus) -> Iterator[Draft]:
    """A sentence that names what another section is headed by asks for that section, without the name.

    The passage that holds the sentence is hidden. A heading of one common word names nothing.
    """
    named: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for held in corpus.sections.values():
        heading = _spoken(held[0].headings[-1]) if held[0].headings else ""
        if len(_meaningful(heading)) > 1 or (len(heading) > 3 and _CODE_NAME.search(heading)):
            named[_name(heading)].append(corpus.section_ids(held[0]))
    targets = {name: sections[0] for name, sections in named.items() if len(sections) == 1}
    first = {name.partition(" ")[0] for name in targets}
    mentions = Counter[tuple[str, ...]]()
    for passage in corpus.passages if targets else ():
        for sentence in map(_spoken, passage.sentences):
            name, start, end = next((one for one in _runs(sentence, first) if one[0] in targets), ("", 0, 0))
            target = targets.get(name, ())
            if target and passage.id not in target and mentions[target] < MOST_MENTIONS:
                mentions[target] += 1
                rest = f"{sentence[:start]} {sentence[end:]}"
                yield Draft("mention", " ".join(rest.split()), (target,), (passage.id,))


def ask_citations(corpus: Corpus) -> Iterator[Draft]:
    """A sentence that cites a document asks for it; passages that hold the sentence are hidden."""
    for link in sorted(corpus.links, key=lambda one: sha256_text(one.document + one.target)):
        target = corpus.origins.get(link.target)
        for sentence in link.sentences[:1] if target is not None and target != link.document else ():
            own = corpus.documents.get(link.document, ())
            hidden = tuple(one.id for one in own if sentence[:60] in " ".join(one.text.split()))
            yield Draft("citation", _spoken(sentence), (corpus.ids(target or ""),), hidden)


def ask_names(corpus: Corpus) -> Iterator[Draft]:
    """A sentence that names two other documents asks for both; the passage that holds it is hidden."""
    first = {name.partition(" ")[0] for name in corpus.titles}
    for passage in corpus.passages if first else ():
        for sentence in passage.plain_sentences:
            runs = (name for name, start, _ in _runs(sentence, first) if sentence[start].isupper())
            found = dict.fromkeys(corpus.titles[name] for name in runs if name in corpus.titles)
            others = [document for document in found if document != passage.document]
            if len(others) == 2:
                yield Draft("names", sentence, tuple(map(corpus.ids, others)), (passage.id,))
                break


_KINDS: tuple[Callable[[Corpus], Iterator[Draft]], ...] = (
    ask_headings, ask_openings, ask_definitions, ask_acronyms, ask_docstrings, ask_commits, ask_links, ask_mentions,
    ask_citations, ask_names,
)  # fmt: skip


def _spoken(sentence: str) -> str:
    return strip_marks(inline_markdown(sentence))


def _target(corpus: Corpus, passage: ExamPassage, path: str) -> tuple[str, ...] | None:
    """The passages that a path leads to: those of the section that its anchor names, or of the whole document."""
    file, _, anchor = path.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(passage.origin), file)) if file else passage.origin
    document = next((corpus.origins[one] for one in (name, f"{name}.md", f"{name}.rst") if one in corpus.origins), None)
    if document is None:
        return None
    held = corpus.documents[document]
    named = [one for one in held if one.headings and "-".join(words(one.headings[-1])) == anchor.lower()]
    return tuple(one.id for one in named) or (corpus.ids(document) if file and not anchor else None)


def _after(corpus: Corpus, passage: ExamPassage, end: int) -> tuple[str, ...]:
    """The section that begins behind a label: in the same passage where it says more, else the next one."""
    if len(passage.text) - end > 10:
        return corpus.section_ids(passage)
    held = corpus.documents[passage.document]
    return corpus.section_ids(held[min(held.index(passage) + 1, len(held) - 1)])


def _runs(sentence: str, first: set[str]) -> Iterator[tuple[str, int, int]]:
    """Runs of at most five words that begin with one of the `first`, folded, with their place; longer ones first."""
    if first.isdisjoint(words(sentence)):
        return
    places = spans(sentence)
    held = [_plain(sentence[start:end]) for start, end in places]
    for place, (start, _) in enumerate(places):
        for end in range(min(place + 5, len(places)), place, -1) if held[place] in first else ():
            yield " ".join(held[place:end]), start, places[end - 1][1]


def _name(title: str) -> str:
    return _plain(re.sub(r"\s*\([^)]*\)$", "", title))


def _plain(text: str) -> str:
    return " ".join(words(text))


def _meaningful(text: str) -> list[str]:
    return [word for word in words(text) if word not in FUNCTION_WORDS and len(word) > 1]


def _is_named(word: str, stems: set[str]) -> bool:
    own = words(word)
    return bool(own) and all(stem_word(one) in stems for one in own)
