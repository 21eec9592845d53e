"""The explorer in a real browser, over a real service: ask, choose, move in time, remember, go
back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hades.settings.tree import Settings
from hades.wiring import open_hades
from tests.e2e.browser import CHROMIUM, browsing
from tests.e2e.documented import make_world
from tests.integration.rest_site import serving_process
from tests.patience import HANG_SECONDS

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no chromium on the path: apt-get install chromium"
    ),
]
QUESTION = "which method does the retry logic of the Parser derive from?"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A home with two snapshots, topics, and a memory of two topics."""
    folder = tmp_path_factory.mktemp("explorer")
    make_world(folder / "ledger")
    with open_hades(Settings(home=folder / "home", embedder="hashing")) as hades:
        hades.ingest.documents(folder / "ledger" / "docs")
        hades.publish()
        (folder / "ledger" / "docs" / "harbour.md").write_text(
            "# Harbour\n\nThe Harbour keeps copies of the Store.\n"
        )
        hades.ingest.documents(folder / "ledger" / "docs")
        hades.build(as_of=datetime(2026, 1, 1, tzinfo=UTC))
        hades.memory.add(
            "approach_x", "Approach X needs an index.", valid_from=datetime(2026, 1, 5, tzinfo=UTC)
        )
        hades.memory.add("bug_y", "Bug Y loses rows.", valid_from=datetime(2026, 1, 6, tzinfo=UTC))
        hades.memory.link(
            "approach_x", "bug_y", "rejected_because", valid_from=datetime(2026, 1, 7, tzinfo=UTC)
        )
        hades.memory.add(
            "approach_x", "Approach X works again.", valid_from=datetime(2026, 3, 1, tzinfo=UTC)
        )
    return folder / "home"


@pytest.fixture(scope="module")
def address(home, programs):
    with serving(home, programs, "admin") as listens:
        yield listens


@contextmanager
def serving(home: Path, programs: Path, mode: str) -> Iterator[str]:
    """The address of a service of its own, in this mode."""
    settings = Settings(home=home, embedder="hashing")
    patient = {
        "HADES_SERVE_SECONDS": str(HANG_SECONDS)
    }  # the first rollback of a process loads MLflow
    arguments = ("--port", "0", "--mode", mode, "--no-token")
    with serving_process(settings, *arguments, programs=programs, **patient) as (_, listens):
        yield f"{listens}/"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("browser") / "profile") as running:
        yield running


@pytest.fixture
def page(address, browser):
    with browser.page() as opened:
        opened.open(f"{address}#ask")
        opened.until("document.querySelector('select[name=recipe]')")
        yield opened
        assert opened.errors == []
        asked = [one for one in opened.requests if not one.startswith(("data:", "about:", "blob:"))]
        assert [
            one for one in asked if not one.startswith(address)
        ] == []  # nothing from anywhere else


def ask(page, question: str = QUESTION, recipe: str = "pathrag") -> None:
    """Ask by keyboard, and wait for the whole answer. The service counts processor time, so a turn
    has its paths.
    """
    page.run(f"document.querySelector('select[name=recipe]').value = '{recipe}'")
    page.run("document.querySelector('input[name=query]').focus()")
    page.run("document.querySelector('input[name=query]').value = ''")
    page.run("document.querySelector('.result').replaceChildren()")
    page.send("Input.insertText", text=question)
    page.press("Enter", text="\r")
    page.until("document.querySelectorAll('.spent .bar').length > 5")
    assert page.run(
        "document.querySelectorAll('.passage').length && "
        "document.querySelectorAll('button.path').length"
    )


def test_a_question_is_asked_by_keyboard_and_a_path_clicked(page, request):
    ask(page)
    page.until("document.querySelectorAll('.path').length > 0")
    assert "Parser" in page.run("document.querySelector('[aria-label=Passages]').innerText")
    page.run("document.querySelector('.path').click()")
    assert page.until("document.querySelector('.path[aria-pressed=true]') !== null")
    told = page.run("[...document.querySelectorAll('.card h2')].map(h => h.innerText).join('|')")
    assert "Path 1" in told
    assert page.run("document.querySelectorAll('#graph canvas').length") > 0
    assert "reads" in page.run("document.querySelector('.spent').innerText")
    assert page.run("document.querySelectorAll('.legend span').length") > 0
    page.until("document.querySelector('.written .answer')")
    _keep_picture(page, request, "ask")


def test_the_first_page_shows_the_corpus_and_its_questions_can_be_asked(page, request):
    page.run("location.hash = '#home'")
    page.until("document.querySelectorAll('.tiles dd').length > 2")
    assert page.run("document.querySelectorAll('.treemap .cell').length") > 0
    _keep_picture(page, request, "home")
    page.run("document.querySelector('[aria-label=\"Example questions\"] button').click()")
    assert page.until("document.querySelector('.spent .bar')")


def test_what_is_in_here_is_answered_from_topics(page, request):
    page.run("location.hash = '#ask/' + encodeURIComponent('what is in here?')")
    page.until("document.querySelector('.written .answer')")
    assert "names and passages in" in page.run(
        "document.querySelector('.written .answer').innerText"
    )
    assert "do not answer" not in page.run("document.querySelector('.result').innerText")
    _keep_picture(page, request, "overview")


def test_a_citation_leads_to_its_passage(page):
    ask(page)
    page.until("document.querySelector('.written .cite')")
    page.run("document.querySelector('.written .cite').click()")
    assert page.until("document.querySelector('.flash') !== null")


def test_a_citation_shows_its_source_with_the_lines_marked_and_closes_by_keyboard(page, request):
    ask(page)
    page.until("document.querySelector('.written .cite')")
    page.run("document.querySelector('.written .cite').click()")
    page.until("document.querySelector('dialog.source mark')")
    marked = page.run("document.querySelector('dialog.source mark').textContent")
    assert marked.strip()
    assert marked in page.run("document.querySelector('dialog.source pre').textContent")
    assert "lines" in page.run("document.querySelector('dialog.source').ariaLabel")
    _keep_picture(page, request, "source")
    page.press("Enter", text="\r")  # the button that closes it has the focus
    assert page.until("document.querySelector('dialog.source') === null")


def test_keys_open_views_and_move_through_paths(page):
    ask(page)
    page.run("document.activeElement.blur()")
    page.press("j")
    assert page.until("document.querySelector('.path[aria-pressed=true]') !== null")
    page.press("5")
    assert page.until("location.hash === '#builds'")


def test_two_snapshots_are_compared(page, request):
    page.run("location.hash = '#builds'")
    page.until("document.querySelector('select[name=before]')")
    page.run("document.querySelector('select[name=before]').form.requestSubmit()")
    assert page.until("document.querySelectorAll('.figures tbody tr').length > 2")
    _keep_picture(page, request, "builds")


def test_nothing_is_wider_than_a_phone(page, request):
    page.send(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=840,
        deviceScaleFactor=1,
        mobile=True,
    )
    for view in ("home", "topics", "memory", "builds"):
        page.run(f"location.hash = '#{view}'")
        page.until("document.querySelector('main .card, main .hero')")
        assert page.run("document.documentElement.scrollWidth") <= 390, view
    page.run("location.hash = '#ask'")
    page.until("document.querySelector('select[name=recipe]')")
    ask(page)
    assert page.run("document.documentElement.scrollWidth") <= 390
    _keep_picture(page, request, "phone")


def test_a_conversation_goes_on_and_what_it_carries_can_be_left_out(page, request):
    page.send(
        "Emulation.setDeviceMetricsOverride",
        width=375,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    page.run("document.querySelector('.limits input[name=type]').value = 'markdown'")
    ask(page)
    page.run("document.querySelector('input[name=follow]').value = 'and for the Store?'")
    page.run("document.querySelector('form.follow').requestSubmit()")
    page.until("document.querySelectorAll('.carried .chip').length > 1")
    assert "Parser" in page.run("document.querySelector('.carried').innerText")
    assert page.run("document.querySelector('.turns').innerText") == QUESTION
    assert page.run("document.documentElement.scrollWidth") <= 375
    _keep_picture(page, request, "follow")
    page.run(
        "[...document.querySelectorAll('.carried .chip')].find(one => "
        "one.innerText.includes('Parser')).click()"
    )
    page.until(
        "document.querySelector('.carried') && "
        "!document.querySelector('.carried').innerText.includes('Parser')"
    )


def test_a_moved_time_asks_again_as_of_that_day(page):
    ask(page)
    page.run("""const day = document.querySelector('#time input[type=date]');
        day.value = '2020-02-03';
                day.dispatchEvent(new Event('change'))""")
    page.until("document.querySelector('#time output').textContent === 'as of 2020-02-03'")
    sent = (
        "performance.getEntriesByType('resource').filter(e => "
        "e.name.endsWith('/v1/query/stream')).length"
    )
    assert page.until(f"{sent} >= 2")


def test_a_judgement_is_kept(page):
    ask(page)
    page.run("document.querySelector('[aria-label=Passages] .judge button').click()")
    assert page.until(
        "document.querySelector('[aria-label=Passages] .judge button[aria-pressed=true]') !== null"
    )


def test_a_miss_is_explained(page):
    ask(page)
    page.run("""const name = document.querySelector('input[name=missing]');
        name.value = 'Edith Holm';
                name.form.requestSubmit()""")
    assert page.until("document.querySelector('form dl')?.textContent.length > 20")


def test_topics_are_listed_and_opened(page, request):
    page.run("location.hash = '#topics'")
    page.until("document.querySelectorAll('.path').length > 0")
    page.run("document.querySelector('details')?.setAttribute('open', '')")
    page.run("document.querySelector('.path').click()")
    assert page.until("document.querySelectorAll('.graph canvas').length > 0")
    _keep_picture(page, request, "topics")


def test_a_memory_is_read_through_time(page, request):
    page.run("location.hash = '#memory/approach_x'")
    page.until("document.querySelectorAll('.trace li').length === 2")
    now = "document.querySelector('.trace li[aria-current=true]').innerText"
    assert "works again" in page.run(now)
    february = int(datetime(2026, 2, 1, tzinfo=UTC).timestamp() * 1000)
    page.run(f"""const moment = document.querySelector('input[name=moment]');
        moment.value = {february};
                 moment.dispatchEvent(new Event('input'))""")
    assert "needs an index" in page.run(now)
    assert "rejected because" in page.run("document.querySelector('table').innerText")
    assert page.run("document.querySelectorAll('.timeline rect').length") == 3
    assert "bug_y" in page.run("document.querySelector('.timeline').textContent")
    _keep_picture(page, request, "memory")


def test_a_build_shows_its_stages_its_contracts_and_its_cost(page):
    page.run("location.hash = '#builds'")
    page.until("document.querySelector('.build')")
    told = page.run("document.querySelector('.build').innerText")
    assert "rules hold" in told
    assert "no language model called" in told
    assert "weights changed" in told
    assert "[object" not in page.run("document.querySelector('main').innerText")
    assert "the median of 1 earlier build" in page.run("document.querySelector('main').innerText")


def test_a_service_that_is_not_for_administrators_offers_no_rollback(home, programs, browser):
    with serving(home, programs, "rw") as address, browser.page() as opened:
        opened.open(f"{address}#builds")
        opened.until("document.querySelectorAll('table tr').length > 1")
        assert opened.run("document.querySelectorAll('table button').length") == 0
        assert "hades rollback" in opened.run("document.querySelector('main').innerText")


def test_an_older_snapshot_serves_after_one_click(page):
    page.run("location.hash = '#builds'")
    page.until("document.querySelectorAll('table button').length > 0")
    before = page.run("document.getElementById('serves').textContent")
    page.run("window.confirm = () => true; document.querySelector('table button').click()")
    assert page.until(f"document.getElementById('serves').textContent !== '{before}'")


def test_it_is_readable_in_the_dark(page, request):
    lit = page.run("getComputedStyle(document.body).backgroundColor")
    page.run("document.getElementById('theme').click()")
    assert page.run("getComputedStyle(document.body).backgroundColor") != lit
    _keep_picture(page, request, "dark")


def _keep_picture(page, request, name: str) -> None:
    """With --picture DIR the page is kept as DIR/explorer-NAME.png, for the documentation."""
    folder = request.config.getoption("--picture")
    if folder:
        time.sleep(1.0)
        page.picture(Path(folder) / f"explorer-{name}.png")


def test_dropped_files_are_read_and_a_wrong_type_is_refused(tmp_path, programs, browser, request):
    (tmp_path / "weir.md").write_text("# Weir\n\nThe weir at Lindau was built by Berta Roth.\n")
    with open_hades(Settings(home=tmp_path / "home", embedder="hashing")) as hades:
        hades.ingest.documents(tmp_path / "weir.md")
        hades.publish()
    drop = (
        "(() => {{ const given = new DataTransfer(); "
        "given.items.add(new File(['# Lock\\n\\nDrawn by Emil Hass.'], '{0}')); "
        "const drop = new DragEvent('drop', {{ dataTransfer: given, bubbles: true }}); "
        "document.querySelector('.drop').dispatchEvent(drop); }})()"
    )
    with serving(tmp_path / "home", programs, "rw") as address, browser.page() as page:
        page.send(
            "Emulation.setDeviceMetricsOverride",
            width=375,
            height=800,
            deviceScaleFactor=1,
            mobile=True,
        )
        page.open(f"{address}#home")
        page.until("document.querySelector('.drop')")
        page.run(drop.format("lock.exe"))
        page.until("document.querySelector('.drop .refused')")
        assert ".exe files are not read" in page.run(
            "document.querySelector('.drop .refused').innerText"
        )
        assert page.run("document.documentElement.scrollWidth") <= 375
        _keep_picture(page, request, "drop")
        page.run(drop.format("lock.md"))
        page.until("[...document.querySelectorAll('.tiles dd')].some(one => one.innerText === '2')")
        assert page.errors == []
