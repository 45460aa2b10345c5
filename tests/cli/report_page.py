"""Checks the structure of pages of `ddpbench report`, and prints their text.

usage: report_page.py PAGE...
Every page must be well-formed. It has no script and names no other file. Each plot stands in a figure
with one table of at least as many rows as one of its series has values, ids are unique, and links lead
to ids. Prints the words of the page, without those of plots, with one blank between them.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def words_of(element):
    """The text of an element, without plots, styles and markers."""
    if element.tag in ("svg", "style"):
        return element.tail or ""
    return (element.text or "") + " " + " ".join(words_of(child) for child in element) + " " + (element.tail or "")


def check(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<!DOCTYPE html>"), "no doctype"
    page = ElementTree.fromstring(text)
    everything = list(page.iter())
    assert not [e for e in everything if e.tag in ("script", "link", "img", "iframe", "object", "base", "form")], "loads or runs something"
    assert not [a for e in everything for a in e.attrib if a.startswith("on") or a in ("src", "action")], "an attribute runs or loads something"
    ids = [e.get("id") for e in everything if e.get("id")]
    assert len(ids) == len(set(ids)), f"ids occur twice: {sorted(i for i in ids if ids.count(i) > 1)}"
    for element in everything:
        assert element.get("href", "#")[:1] == "#", f"a link to {element.get('href')}"
        assert element.get("href", "#")[1:] in ["", *ids], f"a link to nothing: {element.get('href')}"
    assert "url(" not in text and "@import" not in text, "the style loads something"
    figures = list(page.iter("figure"))
    plots = [e for e in page.iter("svg") if e.get("class") == "plot"]
    inside = [e for figure in figures for e in figure.iter("svg") if e.get("class") == "plot"]
    assert len(plots) == len(inside) == len(figures), f"{len(plots)} plots, {len(inside)} of them in {len(figures)} figures"
    for figure in figures:
        title = figure.find("figcaption").text
        tables = list(figure.iter("table"))
        assert len(tables) == 1, f"{title}: {len(tables)} tables"
        rows = len(tables[0].findall("tbody/tr"))
        markers = [len(group.findall("use")) for group in figure.iter("g") if group.get("class") == "m"]
        assert rows >= max(markers) >= 1, f"{title}: {rows} rows for {max(markers)} values"
        assert figure.find("svg").get("aria-label") == title, f"{title}: the plot has another label"
        for number in re.findall(r"-?\d+\.?\d*", " ".join(p.get("d", "") for p in figure.find("svg").iter("path"))):
            assert -100 < float(number) < 5000, f"{title}: draws at {number}"
    for table in page.iter("table"):
        columns = len(table.findall("thead/tr/th"))
        for row in table.findall("tbody/tr"):
            assert len(row) == columns, f"a row has {len(row)} cells of {columns}: {''.join(row.itertext())}"
    levels = [int(e.tag[1]) for e in everything if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1 and levels.count(1) == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])), f"headings {levels}"
    print(" ".join(words_of(page.find("body")).split()))


for page_path in sys.argv[1:]:
    check(page_path)
