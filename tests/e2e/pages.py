#!/usr/bin/env python3
"""Opens pages of `ddpbench report` in headless Chromium: `make e2e`.

Each page is opened 1280 and 400 pixels wide, in light and in dark colours, and printed. A page fails if
it has a script, an error on the console, a request for anything but itself, or something wider than the
window, or if axe-core finds a serious or critical problem. Prints TAP.

usage: pages.py [--screenshots DIR] PAGE...
"""
import argparse
import os
import pathlib
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
# Elements that are wider than the window, unless an ancestor scrolls.
OVERFLOW = """() => {
    const wide = [];
    for (const e of document.body.querySelectorAll("*")) {
        const box = e.getBoundingClientRect();
        if (box.width === 0 || box.right <= document.documentElement.clientWidth + 1 || e.closest(".scroll > *")) continue;
        wide.push(`${e.tagName} ${e.className} ends at ${Math.round(box.right)}`);
    }
    if (document.documentElement.scrollWidth > document.documentElement.clientWidth) wide.push("the page scrolls sideways");
    return wide.slice(0, 5);
}"""


def problems_of(browser, path, width, scheme, screenshot):
    """Everything that is wrong with the page in a window of this width and with these colours."""
    found = []
    url = path.resolve().as_uri()
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.on("console", lambda m: found.append(f"console: {m.type}: {m.text}"))
    page.on("pageerror", lambda e: found.append(f"error: {e}"))
    page.on("request", lambda r: found.append(f"request: {r.url}") if r.url != url else None)
    page.goto(url)
    if screenshot:
        page.screenshot(path=screenshot, full_page=True)
    if page.evaluate("document.scripts.length"):
        found.append("the page has a script")
    found += page.evaluate(OVERFLOW)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(x) for x in background[4:-1].split(",")[:3]) / 3
    if (brightness > 128) != (scheme == "light"):
        found.append(f"the background is {background}")
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in ("serious", "critical"):
            targets = ", ".join(str(node["target"]) for node in violation["nodes"][:3])
            found.append(f"axe: {violation['id']} ({violation['impact']}): {targets}")
    context.close()
    return found


def print_problems(browser, path):
    """The page as PDF must have light colours and show whole tables."""
    page = browser.new_page(color_scheme="dark")
    page.goto(path.resolve().as_uri())
    page.emulate_media(media="print")
    hidden = page.evaluate("[...document.querySelectorAll('.scroll')].filter(e => e.scrollHeight > e.clientHeight + 2).length")
    background = page.evaluate("getComputedStyle(document.querySelector('section')).backgroundColor")
    pdf = page.pdf(format="A4")
    page.close()
    found = [f"{hidden} tables are cut in print"] if hidden else []
    if not pdf.startswith(b"%PDF"):
        found.append("no PDF")
    if background != "rgb(255, 255, 255)":
        found.append(f"printed on {background}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--chromium", default=os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    number = failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for path in options.pages:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    shot = options.screenshots and options.screenshots / f"{path.stem}-{width}-{scheme}.png"
                    found = problems_of(browser, path, width, scheme, shot)
                    number += 1
                    failed += bool(found)
                    print(f"{'not ' if found else ''}ok {number} - {path.name}, {width} pixels, {scheme}", flush=True)
                    for text in found:
                        print(f"#   {text}")
            found = print_problems(browser, path)
            number += 1
            failed += bool(found)
            print(f"{'not ' if found else ''}ok {number} - {path.name}, printed", flush=True)
            for text in found:
                print(f"#   {text}")
        browser.close()
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
