"""The app's password: a valid cookie is accepted; a forged, altered or expired one is not."""

from __future__ import annotations

import time

import pytest
from starlette.requests import HTTPConnection

from workbench.app.shell.serve import COOKIE_DAYS, COOKIE_NAME, Password

PASSWORD = Password("open sesame", "/tools")


def connection(**headers: str) -> HTTPConnection:
    """Return a request with headers."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HTTPConnection({"type": "http", "headers": raw})


def cookie() -> str:
    """Return the cookie that the correct password gives."""
    header = PASSWORD.accept_login(secure=False).headers["set-cookie"]
    assert "HttpOnly" in header and "Path=/tools/" in header and "SameSite=lax" in header
    return header.partition("=")[2].partition(";")[0]


def test_the_cookie_and_the_bearer_token_open() -> None:
    assert PASSWORD.opens(connection(cookie=f"{COOKIE_NAME}={cookie()}"))
    assert PASSWORD.opens(connection(authorization="Bearer open sesame"))


@pytest.mark.parametrize(
    "change", [lambda value: value[:-1], lambda value: f"9{value}", lambda value: "", lambda _: "9."]
)
def test_an_altered_cookie_does_not_open(change) -> None:
    assert not PASSWORD.opens(connection(cookie=f"{COOKIE_NAME}={change(cookie())}"))
    assert not Password("another", "/tools").opens(connection(cookie=f"{COOKIE_NAME}={cookie()}"))
    assert not PASSWORD.opens(connection(authorization="Bearer open"))


def test_a_cookie_ends_after_its_days(monkeypatch: pytest.MonkeyPatch) -> None:
    value, later = cookie(), time.time() + COOKIE_DAYS * 86_400 + 1
    monkeypatch.setattr("workbench.app.shell.serve.time.time", lambda: later)
    assert not PASSWORD.opens(connection(cookie=f"{COOKIE_NAME}={value}"))


@pytest.mark.parametrize("wanted", ["/", "/?q=how%20is%20it%20measured%3F", "/library?document=doc_1"])
def test_the_password_leads_to_the_page_that_was_wanted(wanted: str) -> None:
    assert PASSWORD.accept_login(wanted=wanted, secure=False).headers["location"] == f"/tools{wanted}"


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\r\nset-cookie: b"]
)
def test_the_password_leads_nowhere_but_into_the_app(wanted: str) -> None:
    assert Password("open sesame").accept_login(wanted=wanted, secure=False).headers["location"] == "/"


def test_the_form_carries_the_page_that_was_wanted_as_one_value() -> None:
    page = bytes(PASSWORD.form(wanted='/?q="a"&b=<c>').body).decode()
    assert 'action="/tools/login?wanted=%2F%3Fq%3D%22a%22%26b%3D%3Cc%3E"' in page
