"""From connections to what the engine takes; what is missing is named in words, before any request."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from include.operators.resolve import ConnectionUnfit, credentials, hub, warehouse_url
from tests.operators.stage import FINRA


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ("postgresql://daybook@db:6432/daybook", "postgresql://daybook@db:6432/daybook"),
        (
            "postgresql://me:p%40ss%2Fword@db/house?sslmode=require&options=-c%20search_path%3Dx",
            "postgresql://me:p%40ss%2Fword@db/house?sslmode=require",
        ),
        ('{"conn_type": "postgres", "host": "127.0.0.1"}', "postgresql://127.0.0.1/daybook"),
    ],
)
def test_the_warehouse_is_an_address_that_libpq_reads(monkeypatch, connection, url):
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", connection)
    assert warehouse_url() == url


def test_a_source_without_a_host_of_its_own_keeps_the_declared_one(connected, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_FINRA", '{"conn_type": "http"}')
    found = credentials(FINRA)
    assert found.base_url == found.default_host == "https://cdn.finra.org"


def test_the_key_is_a_secret_and_is_not_shown(monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW_CONN_FINRA",
        '{"conn_type": "http", "host": "cdn.finra.org", "password": "marker-secret", "extra": {"user_agent": "me"}}',
    )
    found = credentials(FINRA)
    assert found.secrets == ("marker-secret",)
    assert found.user_agent == "me"
    assert "marker-secret" not in repr(found)


def test_an_upstream_that_wants_a_contact_is_not_asked_without_one(connected, monkeypatch):
    asking = replace(FINRA, needs_contact=True)
    for agent in ("", "Daybook", "Jane Doe at example.com"):
        given = json.dumps({"conn_type": "http", "extra": {"user_agent": agent}})
        monkeypatch.setenv("AIRFLOW_CONN_FINRA", given)
        with pytest.raises(ConnectionUnfit, match=r"Nothing was asked.*extra\.user_agent"):
            credentials(asking)
    monkeypatch.setenv("AIRFLOW_CONN_FINRA", '{"conn_type": "http", "extra": {"user_agent": "Jane Doe j@example.com"}}')
    assert credentials(asking).user_agent == "Jane Doe j@example.com"


def test_one_setting_redirects_all_traffic(connected, monkeypatch):
    monkeypatch.setenv("DAYBOOK_SANDBOX_URL", "http://127.0.0.1:1/")
    assert credentials(FINRA).sandbox_url == "http://127.0.0.1:1"


def test_a_missing_connection_is_named_with_what_to_do():
    with pytest.raises(ConnectionUnfit) as unfit:
        credentials(FINRA)
    words = str(unfit.value)
    assert words.startswith("Connection finra is missing. Nothing was asked")
    assert "Admin → Connections" in words
    assert "AIRFLOW_CONN_FINRA" in words


def test_a_missing_key_is_named(connected):
    with pytest.raises(ConnectionUnfit, match="Connection finra has no key"):
        credentials(replace(FINRA, needs_key=True))


@pytest.mark.parametrize(
    ("extra", "repository"),
    [('{"namespace": "me"}', "me/daybook-private"), ('{"namespace": "me", "repository": "other"}', "me/other")],
)
def test_the_hub_is_the_endpoint_the_token_and_the_repository(monkeypatch, extra, repository):
    monkeypatch.setenv(
        "AIRFLOW_CONN_HUGGINGFACE",
        f'{{"conn_type": "http", "host": "http://127.0.0.1:1/hub", "password": "token", "extra": {extra}}}',
    )
    found = hub()
    assert (found.endpoint, found.token, found.repository) == ("http://127.0.0.1:1/hub", "token", repository)


def test_a_hub_without_a_namespace_is_refused_in_words(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_HUGGINGFACE", '{"conn_type": "http", "password": "token"}')
    with pytest.raises(ConnectionUnfit, match="lacks a namespace"):
        hub()
