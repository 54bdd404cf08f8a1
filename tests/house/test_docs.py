"""The documents say what the declarations say, and an operator finds a page for every alert."""

from __future__ import annotations

import ast
import re
from functools import cache

import psycopg
import pytest

from include import cli, declared_settings
from include.docs import pages
from include.engine.kinds import KINDS, PAGES, page_of
from tests.house import tree
from tests.house.test_readme import verbs

DOCS = tree.ROOT / "docs"
KNOWN = {kind.name for kind in KINDS}
# A key begins with the word for its kind, then a slash.
KEY = re.compile(r"([a-z]+(?:-[a-z]+)*)/")
# Keys of messages that tell of an incident under the fact's own name, so that it is told once.
FACTS = {"cycle", "listing", "deadline"}
RUNBOOKS = [path for path in tree.files() if path.startswith("docs/runbooks/") and path.endswith(".md")]
WRITTEN = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(p for p in tree.files() if p.startswith("docs/")),
]


def test_the_generated_pages_are_what_the_declarations_say(database):
    assert pages.stale(pages.pages(database), DOCS) == [], "run ./run docs and commit what it writes"


def test_a_page_that_was_changed_by_hand_is_seen(tmp_path):
    made = {"a.md": "Made by `./run docs`\n", "tables/b.md": "Made by `./run docs`\n"}
    (tmp_path / "tables").mkdir()
    (tmp_path / "a.md").write_text("Made by `./run docs`, and then changed\n", encoding="utf-8")
    (tmp_path / "old.md").write_text("Made by `./run docs`, of what is gone\n", encoding="utf-8")
    (tmp_path / "written.md").write_text("By a person\n", encoding="utf-8")
    assert pages.stale(made, tmp_path) == ["a.md", "old.md", "tables/b.md"]


# --- alerts


@cache
def keys() -> frozenset[str]:
    """The first words of all keys that the code and the SQL give alerts and incidents."""
    found = set()
    for path in tree.product_modules():
        text = tree.read(path)
        tells = re.search(r"from include.engine import .*\b(incidents|alerts)\b", text)
        if tells or path in ("include/engine/incidents.py", "include/engine/alerts.py"):
            for node in ast.walk(ast.parse(text)):
                first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    match = KEY.match(first.value)
                    if match and re.fullmatch(r"[a-z-]+/(?:[a-z]+/?)?", first.value):
                        found.add(match[1])
    for path in tree.files():
        if path.startswith("sql/") and path.endswith(".sql"):
            text = tree.read(path)
            found |= set(re.findall(r"open_incident\('([a-z-]+)/", text))
            found |= set(re.findall(r"'([a-z-]+)/' \|\| p_date \|\| '/CAPTURED'", text))
    return frozenset(found)


def test_every_alert_that_is_told_is_of_a_declared_kind_and_every_kind_is_told():
    assert keys() - FACTS == KNOWN


def test_every_kind_of_alert_has_its_page_and_every_page_its_kind():
    there = {path.removeprefix(f"{PAGES}/").removesuffix(".md") for path in RUNBOOKS if path.startswith(f"{PAGES}/")}
    assert there == KNOWN
    assert len(KNOWN) == len(KINDS)
    assert page_of("failing/krx.prices") == f"{PAGES}/failing.md"
    assert page_of("nobody/knows") is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_alerts_page_says_what_it_means_what_to_look_at_and_what_to_do(kind):
    text = tree.read(kind.page)
    assert text.startswith(f"# `{kind.name}/")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[1::2] == ["What it means", "What to look at", "What to do"]
    assert all(len(part.split()) >= 4 or part.strip() for part in parts[2::2])


def test_every_question_that_a_runbook_asks_the_database_can_be_asked(database):
    asked = 0
    with psycopg.connect(database, autocommit=True) as connection:
        for path in RUNBOOKS:
            for span in re.findall(r"`(select [^`]+)`", tree.read(path)):
                if "TABLE" in span:
                    continue
                connection.execute(f"explain {span}")
                asked += 1
    assert asked > 10


# --- settings


def test_every_setting_that_is_read_is_declared_and_every_declared_one_is_read():
    read = set(re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"', tree.read("include/settings.py")))
    # Airflow's own, read where ours is not set, and what is only written for OpenTelemetry.
    read = {name for name in read if not name.startswith(("AIRFLOW_", "AIRFLOW__", "OTEL_"))}
    assert read == {setting.name for setting in declared_settings.SETTINGS}


def test_no_secret_has_a_default():
    secret = re.compile(r"(KEY|SECRET|TOKEN|PASSWORD)$")
    assert [each.name for each in declared_settings.SETTINGS if secret.search(each.name) and each.default] == []


# --- links


@pytest.mark.parametrize("page", WRITTEN)
def test_what_a_page_links_to_is_there(page):
    folder = (tree.ROOT / page).parent
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", tree.read(page)):
        assert (folder / target).resolve().exists(), f"{page} links to {target}"


def test_every_command_that_a_page_shows_exists():
    below = next(action for action in cli._parser()._actions if action.choices)
    for page in WRITTEN:
        for verb, rest in re.findall(r"\./run ([a-z][\w-]*)(?: ([a-z][\w-]*))?", tree.read(page)):
            assert verb in verbs(), f"{page} shows ./run {verb}"
            assert verb != "cli" or not rest or rest in below.choices, f"{page} shows ./run cli {rest}"
