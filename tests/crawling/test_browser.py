"""Pages that need JavaScript, and a browser that reaches nothing it may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crawling.site import TestSite, outcomes, page, reason, redirect
from workbench import Workbench

pytestmark = pytest.mark.browser

SCRIPTED = """<html><head><title>App</title></head><body>
<div id="root"></div><noscript>Needs JavaScript.</noscript><script>
fetch('/data').then(r => r.text()).then(t => {{ document.getElementById('root').innerHTML =
  '<h1>Scripted</h1><p>' + t + '</p><p class=x>UNSEEN</p><style>.x{{display:none}}</style><a href="/next">on</a>'; }});
{more}
</script></body></html>"""


def test_pages_made_by_scripts_are_rendered_and_the_others_are_not(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any]
) -> None:
    port = site.port
    forbidden = f"http://127.0.0.2:{port}"
    more = f"fetch('{forbidden}/secret'); new Image().src = '{forbidden}/image'; new WebSocket('ws{forbidden[4:]}/ws');"
    site.put({
        "/": page("Start", links=["/app", "/plain", "/leap"]), "/data": "Words that only a script could bring here.",
        "/app": SCRIPTED.format(more=more + " fetch('/away');"), "/plain": page("Plain"), "/next": page("Next"),
        "/away": redirect(f"{forbidden}/redirected"),
        "/leap": f"<body><div id=root></div><script>location.href = '{forbidden}/leapt'</script></body>",
        "/secret": "SECRET", "/image": "SECRET", "/redirected": "SECRET", "/leapt": page("SECRET"),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/", browser="auto", timeout=15)
    found = outcomes(wb, crawled)
    assert {found[path] for path in ("", "app", "plain", "next")} == {"added"}
    assert (found["leap"], "may not be fetched" in reason(wb, crawled, "/leap")) == ("forbidden", True)
    assert [p.url for p in wb.crawls.pages(crawled["id"]) if p.rendered] == [f"{site.url}/app"]
    text = next(wb.knowledge.document(d.id).text for d in wb.knowledge.documents() if d.url == f"{site.url}/app")
    assert text is not None and "Words that only a script" in text and "UNSEEN" not in text
    assert not {"/secret", "/image", "/ws", "/redirected", "/leapt"} & set(site.hits())
