"""A derivation that keeps what the last one found gives the tables of one that keeps nothing, after any history."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hades.ingest.entities.derive import DerivedRows, derive
from hades.ingest.entities.known_names import EntityRules
from tests.patience import examples
from tests.unit.hades.ingest.entities.conftest import build_view

Row = dict[str, Any]
# Names that act on each other: full names with short forms, initials and middle names, plurals, spellings with a slip,
# articles and honorifics, acronyms with one and with two meanings, words that are common in some corpora only.
PEOPLE = ("Gene Hackman", "Hackman", "G. Hackman", "Gene Alden Hackman", "Ada Lovelace", "Lovelace", "Ada")
THINGS = (
    *("The Beatles", "Beatles", "King Lothair II", "Lothair II", "Lothair", "Tottenham Hotspur F.C.", "John Huston"),
    *("support vector machine (SVM)", "support vector machines", "SVM", "stochastic volatility model (SVM)", "dataset"),
    *("Tottenham Hotspur", "data set", "Mississippi River", "Missisippi River", "Hunters", "hunters", "India"),
    *("India and Pakistan", "Pakistan"),
)
TITLES = (
    *("", "Gene Hackman", "Lothair II (king)", "Lothair II (film)", "Lothair II", "The Beatles", "Beatles"),
    *("Introduction", "Hackman (surname)", "Mississippi River", "SVM", "C++", "C#", "Foo Bar", "Foo-Bar", "Foo_Bar"),
)
VERBS = ("met", "is a film by", "was a king of", "wrote to", "and", "(born 1930) is an actor in", "admired")
KINDS = ("PERSON", "ORG", None)


def write_row(number: int, chance: random.Random) -> Row:
    words = (*PEOPLE, *THINGS)
    said = [
        f"{chance.choice(words)} {chance.choice(VERBS)} {chance.choice(words)}{chance.choice('.;!')}"
        for _ in range(chance.randint(0, 5))
    ]
    text = " ".join(said) or "Nothing."
    facts: Row = {}
    if chance.random() < 0.4:
        facts["names"] = [[chance.choice(words), chance.choice(KINDS)] for _ in range(2)]
    if chance.random() < 0.3:
        facts["triples"] = [[chance.choice(words), "knows", chance.choice(words)]]
    if chance.random() < 0.3:
        names = (("get", "a.get"), ("get", "b.get"), ("EmailMessage", "mail.EmailMessage"), ("Hackman", "film.Hackman"))
        facts["symbols"] = [dict(zip(("name", "qualified_name"), chance.choice(names), strict=True)) for _ in range(2)]
    if chance.random() < 0.2:
        facts["links"] = [{"target": chance.choice(("github.com/a/mail.py", "github.com/b/c")), "external": True}]
    return {
        "id": f"d{number:02}",
        "title": chance.choice(TITLES),
        "text": text,
        "source": chance.choice(("passages", "passages", "arxiv")),
        "facts": facts,
        "domains": chance.sample(("film", "music", "rivers"), chance.randint(0, 2)),
        "cuts": sorted({0, len(text) // 2, len(text)}) if chance.random() < 0.3 else [0, len(text)],
    }


def tables(derived: DerivedRows) -> dict[str, Any]:
    return {name: getattr(derived, name) for name in ("entities", "mentions", "relations", "merge_log", "titles")}


def damage(folder: Path, chance: random.Random) -> None:
    file = chance.choice(sorted((folder / "derivation").iterdir()))
    data = bytearray(file.read_bytes())
    if chance.random() < 0.5 or not data:
        file.unlink()
    else:
        data[chance.randrange(len(data))] ^= 1
        file.write_bytes(bytes(data))


@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2]), st.booleans())
def test_any_history_gives_the_tables_of_a_derivation_from_scratch(seed: int, min_texts: int, is_damaged: bool) -> None:
    chance = random.Random(seed)
    rules = EntityRules(min_texts=min_texts, term_min_texts=2, max_texts=chance.choice((4, 200)))
    held = {number: write_row(number, chance) for number in range(chance.randint(0, 14))}
    with tempfile.TemporaryDirectory() as folder:
        for step in range(6):
            for _ in range(chance.randint(0, 3) if step else 0):
                number = chance.randrange(16)
                if chance.random() < 0.4:
                    held.pop(number, None)
                else:
                    held[number] = write_row(number, chance)
            if step == 3 and is_damaged:
                damage(Path(folder), chance)
            rows = list(held.values())
            chance.shuffle(rows)
            kept, whole = derive(build_view(rows), rules, Path(folder)), derive(build_view(rows), rules)
            for name, table in tables(whole).items():
                assert tables(kept)[name].equals(table), name
