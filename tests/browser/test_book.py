"""The book of `make book` in a real browser: wide and narrow, light and dark, checked with axe."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

BOOK = Path(__file__).resolve().parent.parent.parent / "build/book/html"
PAGES = (
    "index",
    "notebooks/00_start_here",
    "notebooks/01_mpi_concepts",
    "notebooks/04_convergence",
    "exercises/mpi_concepts",
    "notebooks/reference_card",
)
# What readers cannot do without, and the order of headings, which axe calls moderate.
SERIOUS = ("serious", "critical")
LOADED = re.compile(r"""(?:<(?:script|img|iframe)[^>]*\ssrc|<link[^>]*\shref)=["'](?:https?:)?//""")


def wrong_with(page):
    """Return what axe finds, and which pictures have no text alternative."""
    found = [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in SERIOUS or violation["id"] == "heading-order"
        for node in violation["nodes"]
    ]
    return found + page.locator(".bd-article img").evaluate_all(
        "all => all.filter(one => !one.alt.trim()).map(one => 'no alt: ' + one.src)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_pages_are_readable_and_ask_no_other_host(browser, scheme, width):
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name in PAGES:
        page.goto(f"{(BOOK / name).as_uri()}.html")
        assert page.locator("html").get_attribute("data-theme") == scheme
        if page.locator(".math").count():
            expect(page.locator(".math .MathJax").first).to_be_attached(timeout=30_000)
        wrong = wrong_with(page)
        assert not wrong, f"{name}:\n" + "\n".join(wrong)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        fields = page.get_by_role("button", name="Search", exact=True)
        assert sum(field.is_visible() for field in fields.all()) == 1, name
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()


def test_every_other_page_is_readable(browser):
    paths = [path.relative_to(BOOK).with_suffix("") for path in BOOK.rglob("*.html")]
    names = {str(path) for path in paths if path.parts[0] != "_static"}
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    wrong = []
    for name in sorted(names.difference(PAGES)):
        page.goto(f"{(BOOK / name).as_uri()}.html")
        wrong += [f"{name}: {one}" for one in wrong_with(page)]
    assert wrong == [], "\n".join(wrong)
    page.close()


def test_the_search_finds_a_lesson(browser):
    page = browser.new_page()
    page.goto(f"{(BOOK / 'search').as_uri()}.html?q=allreduce")
    expect(page.locator("#search-results li").first).to_be_visible(timeout=20_000)


def test_no_page_loads_from_another_host():
    pages = sorted(BOOK.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []
