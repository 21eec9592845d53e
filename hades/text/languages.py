"""Which language a text is in, and the words it is found by in that language.

Full text search reads every text as English. A text in another language, or in a script without blanks between words,
is stored with further words: stems of its own language, pairs of characters. A question gets the same ones.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable

import Stemmer

from hades.text.word_lists import FUNCTION_WORDS

ENGLISH = "en"
_SAMPLE = 4_000  # characters; enough to know a language by
_LEAST_HITS = 2  # words of a language that a text must hold; one stands in texts of any language
# Letters of scripts, as classes of characters. A script that several languages share says the commonest of them.
_HAN, _KANA, _HANGUL = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff", "\u3040-\u30ff", "\uac00-\ud7af"
_UNSPACED = f"{_HAN}{_KANA}{_HANGUL}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # ... Thai, Lao, Burmese, Khmer
_UNSPACED_LANGUAGES = frozenset(("ja", "zh", "ko", "th"))
_SCRIPTS = {
    "ja": re.compile(f"[{_KANA}]"),
    "zh": re.compile(f"[{_HAN}]"),
    "ko": re.compile(f"[{_HANGUL}]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "ta": re.compile("[\u0b80-\u0bff]"),
    "hy": re.compile("[\u0530-\u058f]"),
}
_STEMMER_NAMES = """
    ar:arabic ca:catalan cs:czech da:danish de:german el:greek es:spanish et:estonian fi:finnish fr:french hi:hindi
    hu:hungarian hy:armenian id:indonesian it:italian lt:lithuanian nl:dutch no:norwegian pl:polish pt:portuguese
    ro:romanian ru:russian sv:swedish ta:tamil tr:turkish
"""
_STEMMERS = dict(pair.split(":") for pair in _STEMMER_NAMES.split())
# The commonest words of languages in Latin letters with the letters that mark them, and of Russian: they tell the
# language, and nothing is searched by them.
_COMMON = {
    "de": """
        der die das den dem des ein eine einen einem einer eines und oder nicht ist sind war waren wurde wurden
        wird werden hat haben hatte mit von vom zu zum zur bei beim auf aus nach für über unter durch gegen als
        auch sich es er sie wir ihr im am an in um wie was wer wann wo warum welche welcher welches welchen
        welchem wieviel wofür worauf woran worüber wovon wohin viele oft sein dass daß wenn aber noch nur kann
        können seine ihre ä ö ü ß
    """,
    "fr": """
        le la les l un une des du de d et ou où ne pas est sont était étaient été être a ont avait avoir avec
        pour par sur dans en au aux que qui qu quoi quel quelle quels quelles quand comment pourquoi combien ce
        cette ces il elle ils elles nous vous se s son sa ses leur leurs plus comme mais é è ê ç à ù œ
    """,
    "es": """
        el la los las un una unos unas de del y o e no es son era eran fue fueron ser está han había con por
        para en al a que qué quién quiénes cuál cuáles cuándo cómo dónde cuánto cuántos cuántas cuánta se su sus
        lo le les más como pero sobre entre este esta á é í ó ú ñ ¿ ¡
    """,
    "it": """
        il lo la i gli le un uno una di del della dello dei degli delle e o non è sono era erano stato ha hanno
        con per da dal dalla in nel nella su sul al alla che chi cosa quale quali quando come dove perché quanto
        quanti si suo sua più anche ma à ì ò ù
    """,
    "pt": """
        o a os as um uma de do da dos das e ou não é são era eram foi foram ser está tem com por para em no na
        nos nas ao à que quem qual quais quando como onde quanto quantos se seu sua mais mas também pelo pela ã
        õ ç á ê
    """,
    "nl": """
        de het een en of niet is zijn was waren werd werden wordt worden heeft hebben had met van voor op uit
        naar bij door over aan in om te dat die dit deze hij zij wij ze er als ook maar wat wie wanneer waar
        waarom hoe welke hoeveel
    """,
    "sv": """
        och eller inte är var blev har hade med av för på till från vid en ett den det de som att om i han hon
        vi vad vem när hur vilken vilket vilka också men å ä ö
    """,
    "da": """
        og eller ikke er var blev har havde med af for på til fra ved en et den det de som at om i han hun vi
        hvad hvem hvornår hvor hvordan hvilken hvilket hvilke også men efter blevet å æ ø
    """,
    "no": """
        og eller ikke er var ble har hadde med av for på til fra ved en et den det de som at om i han hun vi hva
        hvem når hvor hvordan hvilken hvilket hvilke også men etter blitt å æ ø
    """,
    "fi": """
        ja tai ei on oli ovat olivat ollut joka jotka että se ne hän he mikä mitä kuka milloin missä miten miksi
        kuinka kun myös mutta kuin sekä ä ö
    """,
    "pl": """
        i lub nie jest są był była było były z ze w we na do od za po o dla przez że się który która które jak
        co kto kiedy gdzie dlaczego ile ten ta to jego jej oraz ale ą ę ł ś ż ź ć ń
    """,
    "cs": """
        a nebo ne je jsou byl byla bylo byli s se si z ze v ve na do od za po o pro že který která které jak co
        kdo kdy kde proč kolik ten ta to jeho její ale také ř ě ů č š ž
    """,
    "hu": """
        a az és vagy nem van volt voltak egy hogy ki mi mit mikor hol hogyan miért hány melyik is de mint meg ez
        ezt azt csak ő ű á ö ü
    """,
    "ro": """
        și sau nu este sunt era erau a fost cu de la din pe în pentru un o care ce cine când unde cum câte câți
        al ale lui mai dar ă ș ț â î
    """,
    "tr": """
        ve veya değil bir bu şu o ile için de da ne kim nerede nasıl neden kaç hangi olarak olan daha çok gibi
        mi mı en ı ğ ş ç
    """,
    "ca": """
        el la els les un una uns unes de del dels i o no és són era eren va van ser amb per en al als que què
        qui quin quina quan com on es seu seva més però ç à ò
    """,
    "id": """
        dan atau tidak adalah yang di ke dari untuk dengan pada ini itu oleh dalam apa siapa kapan mana
        bagaimana mengapa berapa juga sebagai
    """,
    "lt": """
        ir arba ne yra buvo su iš į kad kas kaip kur kada kodėl kiek kuris kuri tai jis ji bet taip ė ų ū š ž
    """,
    "et": """
        ja või ei on oli olid et kes mis mida millal kus kuidas miks mitu see ka aga kui ning õ ä ö
    """,
    "ru": """
        и в во не что он она они оно на я с со как а то все так его её их но по из у за от о об для до при был
        была было были быть это этот эта эти который которая которые которое какой какая какие какое кто когда
        где почему сколько же или также чем
    """,
}
_STOP_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_LATIN = {language: words for language, words in _STOP_WORDS.items() if language != "ru"}
_WORD = re.compile(r"[^\W_]+")
_LATIN_WORD = re.compile("[a-z]+")
_MARKED = re.compile(r"[^\W\d_a-z]|[¿¡]")
_PARTS = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_local = threading.local()  # a Snowball stemmer is not safe across threads


def detect_language(text: str) -> str:
    """The language of a text (ISO 639-1) by its script or its commonest words; English where neither tells."""
    sample = unicodedata.normalize("NFC", text[:_SAMPLE]).lower()
    if not sample.isascii() and (script := _script(sample)):
        return script
    used = frozenset([*_WORD.findall(sample), *_MARKED.findall(sample)])
    hits = {language: len(used & words) for language, words in _LATIN.items()}
    best = max(hits, key=lambda language: hits[language])
    return best if hits[best] >= _LEAST_HITS and hits[best] > len(used & FUNCTION_WORDS) else ENGLISH


def language_words(text: str, language: str) -> list[str]:
    """What a text is found by beside its words: stems of its language without common words, pairs of characters."""
    if language == ENGLISH and (text.isascii() or not _UNSPACED_RUN.search(text)):
        return []
    common = _STOP_WORDS.get(language, frozenset())
    stemmer = stemmer_named(_STEMMERS[language]) if language in _STEMMERS else None
    spoken = split_unspaced(_WORD.findall(unicodedata.normalize("NFC", text).lower()))
    return [word if stemmer is None else stemmer.stemWord(word) for word in spoken if word not in common]


def split_unspaced(words: Iterable[str]) -> list[str]:
    """The words, with pairs of characters instead of each run of characters that are written without blanks."""
    found: list[str] = []
    for word in words:
        if not _UNSPACED_RUN.search(word):
            found.append(word)
            continue
        for part in _PARTS.findall(word):
            pairs = [part[place : place + 2] for place in range(len(part) - 1)] if _UNSPACED_RUN.match(part) else []
            found += pairs or [part]
    return found


def _script(sample: str) -> str:
    """The language of the script that most of a text is in; none for Latin letters."""
    counts = {language: len(pattern.findall(sample)) for language, pattern in _SCRIPTS.items()}
    best = max(counts, key=lambda language: counts[language])
    # A character of an unspaced script says about as much as a word in Latin letters.
    others = len(_LATIN_WORD.findall(sample)) if best in _UNSPACED_LANGUAGES else 2 * sum(map(str.isalpha, sample)) / 3
    if counts[best] <= others:
        return ""
    return "ja" if best == "zh" and counts["ja"] * 10 > counts["zh"] else best


def stemmer_named(name: str) -> Stemmer.Stemmer:
    """The Snowball stemmer of a language, one for each thread."""
    known: dict[str, Stemmer.Stemmer] = _local.__dict__.setdefault("stemmers", {})
    return known.get(name) or known.setdefault(name, Stemmer.Stemmer(name))
