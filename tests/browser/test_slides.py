"""Every deck in a real browser: it starts, fits, has notes, and asks no other host."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
BUILT = PROJECT / "build" / "slides"
LESSONS = [path.stem for path in sorted((PROJECT / "slides").glob("[0-9]*.md"))]
# In the size of a slide, 1280 x 720; a browser rounds.
MEASURE = """() => {
  const slides = [...document.querySelectorAll('.slides > section > section')];
  return slides.map(slide => {
    const inside = [...slide.children].filter(one => !one.matches('aside'));
    const own = [...slide.querySelectorAll('pre, table, img, .MathJax_Display > span')];
    const blocks = [...slide.querySelectorAll('pre, pre code')];
    return {
      title: slide.querySelector('h1, h2').textContent,
      height: Math.max(slide.scrollHeight,
                       ...inside.map(one => one.offsetTop + one.offsetHeight)),
      width: Math.max(slide.scrollWidth, ...own.map(one => one.offsetWidth),
                      ...blocks.map(one => one.scrollWidth)),
      notes: [...slide.querySelectorAll('aside.notes')].map(one => one.textContent).join(),
      unnamed: slide.querySelectorAll('img:not([alt]), img[alt=""]').length,
      broken: [...slide.querySelectorAll('img')].filter(one => !one.naturalWidth).length,
      formulas: slide.querySelectorAll('.math.notranslate').length,
      typeset: slide.querySelectorAll('.math.notranslate .MathJax').length,
    };
  });
}"""


def test_every_lesson_has_a_deck():
    notebooks = [path.stem for path in sorted((PROJECT / "notebooks").glob("[0-9]*.ipynb"))]
    assert notebooks == LESSONS


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_deck_can_be_taught_from(browser, lesson):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((BUILT / f"{lesson}.html").as_uri())
    page.wait_for_function("Reveal.isReady() && Boolean(window.MathJax?.Hub?.Queue)")
    page.evaluate("() => new Promise(done => MathJax.Hub.Queue(done))")
    slides = page.evaluate(MEASURE)
    page.close()
    elsewhere = [
        url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:blank"))
    ]
    assert elsewhere == []
    assert errors == []
    assert 10 <= len(slides) <= 15
    for slide in slides:
        assert slide["height"] <= 720, slide
        assert slide["width"] <= 1280, slide
        assert "minute" in slide["notes"], slide
        assert slide["unnamed"] == slide["broken"] == 0, slide
        assert slide["typeset"] == slide["formulas"], slide
