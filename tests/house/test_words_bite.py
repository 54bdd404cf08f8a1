"""The search for places, secrets and strangers finds what it is for, and leaves the rest alone."""

from __future__ import annotations

import pytest

from tests.house import words


@pytest.mark.parametrize(
    "text", ["cd /{}/main", "see '/{}/notes.md'", "file:///{}/x", "`/{}/a`", "path=/{}/venv/bin/python"]
)
@pytest.mark.parametrize("place", ["work", "root", "home/somebody", "Users/Somebody", "tmp/scratch"])
def test_a_path_of_one_machine_is_found(text, place):
    assert words.places("README.md", text.format(place))


@pytest.mark.parametrize(
    "text", ["https://example.com/work/x", "$HOME/tmp/x", "../home/x", "a/root/b", "/workers", "/var/lib/daybook/logs"]
)
def test_other_paths_are_left_alone(text):
    assert words.places("README.md", text) == []


@pytest.mark.parametrize(
    "parts",
    [
        ("hf_", "a" * 34),
        ("https://hooks.slack.com/services/T", "0AAAAAAAA/B0AAAAAAAA/", "a" * 24),
        ("xoxb", "-1234567890-abcdef"),
        ("sk", "-proj-" + "a" * 40),
        ("ghp", "_" + "a" * 36),
        ("AKIA", "ABCDEFGHIJKLMNOP"),
        ("-----BEGIN RSA ", "PRIVATE KEY-----"),
        ("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiJhZG1pbiJ9", ".c2lnbmF0dXJlLW9mLWl0"),
    ],
)
def test_a_text_in_the_shape_of_a_secret_is_found_and_not_repeated(parts):
    secret = "".join(parts)
    findings = words.secrets("README.md", f"first line\nkey = {secret}\n")
    assert [finding.line for finding in findings] == [2]
    assert secret not in str(findings[0])


@pytest.mark.parametrize("text", ["hf_...", "hooks.slack.com/services/T0/B0/sandbox", "sandbox-token", "sk-learn"])
def test_examples_are_no_secrets(text):
    assert words.secrets("README.md", text) == []


@pytest.mark.parametrize(
    "path",
    [".env", ".daybook/secrets.json", "a/passwords.json", "config/connections.env", "x/server.key", ".venv/bin/python"],
)
def test_a_file_of_an_installation_is_found(path):
    assert words.strangers((path, "README.md"))


def test_examples_of_files_are_no_strangers():
    assert words.strangers(("config/connections.example.env", "config/compose.example.env", "a/keys.py")) == []


def test_a_registry_in_a_requirements_file_is_found():
    assert words.registries("requirements.txt", "--index-url https://example.com/simple\npandas==1\n")
    assert words.registries("requirements.txt", "pandas==1\n-c other.txt\n# --index-url is the user's\n") == []
