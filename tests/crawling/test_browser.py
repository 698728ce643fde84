"""Pages that need JavaScript, and a browser that only reaches allowed addresses: our own, or an existing one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.crawling.site import TestSite, finish, outcomes, page, reason, redirect
from tests.crawling.test_misbehaving_sites import served
from tests.crawling.trap import Trap, trapped
from workbench import Workbench
from workbench.crawling.browser import find_chromium
from workbench.settings import Settings

pytestmark = pytest.mark.browser
Make = Callable[..., Settings]
OPTIONS = {"timeout": 15, "retries": 0, "sitemaps": False}

SCRIPTED = """<html><head><title>App</title><link rel=preconnect href='{away}/pre'><link rel=prefetch href='{away}/f'>
</head><body><div id="root"></div><noscript>Needs JavaScript.</noscript>
<iframe src='{away}/frame'></iframe><iframe src='/away'></iframe><script>
const away = '{away}', quiet = () => 0;
const asks = [
  () => fetch(away + '/fetch', {{mode: 'no-cors'}}).catch(quiet), () => fetch('/away').catch(quiet),
  () => {{ new Image().src = away + '/image'; new Image().src = '/away'; }},
  () => new WebSocket('ws' + away.slice(4) + '/ws'), () => new EventSource(away + '/events'),
  () => navigator.sendBeacon(away + '/beacon'), () => window.open(away + '/popup'),
  () => {{ const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:' + away.slice(7)}}]}});
           peer.createDataChannel('x'); peer.createOffer().then(o => peer.setLocalDescription(o)).catch(quiet); }},
  () => {{ const frame = document.body.appendChild(document.createElement('iframe'));
           const peer = new frame.contentWindow.RTCPeerConnection({{iceServers: [{{urls: 'stun:' + away.slice(7)}}]}});
           peer.createDataChannel('x'); peer.createOffer().then(o => peer.setLocalDescription(o)).catch(quiet); }},
  () => new WebTransport('https' + away.slice(4) + '/transport').ready.catch(quiet),
  () => new Worker(URL.createObjectURL(new Blob([`fetch('${{away}}/worker', {{mode: 'no-cors'}}).catch(() => 0)`]))),
];
for (const ask of asks) {{ try {{ ask(); }} catch (error) {{ }} }}
fetch('/data').then(r => r.text()).then(t => {{ document.getElementById('root').innerHTML =
  '<h1>Scripted</h1><p>' + t + '</p><p class=x>UNSEEN</p><style>.x{{display:none}}</style><a href="/next">on</a>'; }});
</script></body></html>"""


def scripted_site(site: TestSite, trap: Trap) -> None:
    """Serve a site whose pages try every way to leave the browser, all leading to the trap."""
    away = f"http://127.0.0.2:{trap.port}"
    site.put({
        "/": page("Start", links=["/app", "/plain", "/leap", "/moved"]), "/plain": page("Plain"), "/next": page("Next"),
        "/data": "Words that only a script could bring here.", "/app": SCRIPTED.format(away=away),
        "/away": redirect(f"{away}/redirected"), "/moved": redirect(f"{away}/moved"),
        "/leap": f"<body><div id=root></div><script>location.href = '{away}/leapt'</script></body>",
    })  # fmt: skip


@contextmanager
def given_chromium(folder: Path) -> Iterator[str]:
    """A Chromium started for other purposes, without a proxy or restrictions; yields its CDP address."""
    path = find_chromium()
    assert path is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
    with subprocess.Popen([path, *flags, "about:blank"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "DevTools listening on" in line)
        try:
            yield f"http://{line.split('ws://')[1].split('/')[0]}"
        finally:
            process.kill()


def test_pages_made_by_scripts_are_rendered_and_the_others_are_not(
    wb: Workbench, site: TestSite, crawl: Callable[..., Any]
) -> None:
    with trapped("127.0.0.2") as trap:
        scripted_site(site, trap)
        crawled = crawl(f"{site.url}/", browser="auto", **OPTIONS)
        assert trap.heard() == []
    found = outcomes(wb, crawled)
    assert {found[path] for path in ("", "app", "plain", "next")} == {"added"}
    assert (found["leap"], "may not be fetched" in reason(wb, crawled, "/leap")) == ("not_allowed", True)
    assert [p.url for p in wb.crawls.pages(crawled["id"]) if p.rendered] == [f"{site.url}/app"]
    text = next(wb.documents.get(d.id).text for d in wb.documents.list() if d.url == f"{site.url}/app")
    assert text is not None and "Words that only a script" in text and "UNSEEN" not in text


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_a_given_browser_reaches_nothing_it_may_not(
    make_settings: Make, site: TestSite, tmp_path: Path, mode: str
) -> None:
    with given_chromium(tmp_path / "profile") as cdp, trapped("127.0.0.2") as trap:
        scripted_site(site, trap)
        settings = make_settings(crawl_allow_hosts="127.0.0.1", crawl_browser_url=cdp)
        with Workbench.open(settings=settings) as wb:
            crawled = finish(wb, wb.crawls.start(f"{site.url}/", browser=mode, **OPTIONS).id)
            assert trap.heard() == []
            found = outcomes(wb, crawled)
            assert {found[path] for path in ("", "app", "plain", "next")} == {"added"}
            assert [p.url for p in wb.crawls.pages(crawled["id"]) if p.url.endswith("/app") and p.rendered]


def test_a_browser_that_does_not_use_the_guarding_proxy_is_refused(make_settings: Make, site: TestSite) -> None:
    site.put({"/": page("Start")})
    settings = make_settings(crawl_allow_hosts="127.0.0.1", crawl_browser_url=site.url)
    with Workbench.open(settings=settings) as wb:
        crawled = finish(wb, wb.crawls.start(f"{site.url}/", browser="always", **OPTIONS).id)
        assert crawled["status"] == "failed"
        assert "WORKBENCH_CRAWL_BROWSER_URL" in crawled["error_message"]


def test_a_browser_is_asked_what_it_shows(wb: Workbench, site: TestSite, crawl: Callable[..., dict[str, Any]]) -> None:
    site.put(
        {
            "/": """<html><head><title>Styles</title><style>
      section > p.a { display: none } div.b { display: none } section div.b { display: block }
      .grid { font-size: 0 } .grid b { font-size: 14px } body.js .gone { visibility: hidden }</style></head>
      <body style="visibility:hidden"><section><p class=a>UNSEEN</p><div class=b>SHOWN</div>
      <div class=grid><b>SIZED</b></div><p class=gone>VANISHED</p><x-y></x-y>
      <div role=tabpanel hidden>OPENED</div></section>
      <script>document.body.className = 'js'; document.body.style.visibility = 'visible';
      document.querySelector('x-y').attachShadow({mode: 'open'}).innerHTML = '<p>ROOTED</p>';</script></body></html>"""
        }
    )
    crawl(f"{site.url}/", browser="always", recursive=False, **OPTIONS)
    text = wb.documents.get(next(iter(wb.documents.list())).id).text or ""
    assert [word for word in ("SHOWN", "SIZED", "ROOTED", "OPENED") if word not in text] == []
    assert "UNSEEN" not in text and "VANISHED" not in text


def test_talks_with_random_ids_are_pages_in_a_browser_too(
    wb: Workbench, site: TestSite, crawl: Callable[..., dict[str, Any]]
) -> None:
    talks = [f"/talk?sessionId=65f1c0a3e4b0a1b2c3d4e5f{n}" for n in range(2)]
    site.put({"/": page("Talks", links=talks)} | {talk: page(talk[-2:]) for talk in talks})
    crawled = crawl(f"{site.url}/", browser="always", **OPTIONS)
    assert outcomes(wb, crawled) == {"": "added"} | {talk[1:]: "added" for talk in talks}


def test_a_browser_is_asked_what_a_page_shows_and_each_header_is_heard(wb: Workbench) -> None:
    parts = (
        "<div aria-hidden=true><p>Behind a dialog: SEEN1.</p></div><p style='text-indent:-9999px'>NOT1</p>"
        "<style>.text{display:none} #t:checked ~ .text{display:block}</style>"
        "<input type=checkbox id=t><label for=t>Q</label><div class=text>SEEN2</div><div hidden>NOT2</div>"
    )
    tags = {"/": b"", "/no": b"googlebot: all\r\nX-Robots-Tag: noindex", "/yes": b"noarchive\r\nX-Robots-Tag: x: none"}

    def answer(path: str) -> bytes:
        body = page(f"At {path}", f"Words. {parts}", links=["/no", "/yes"] if path == "/" else []).encode()
        head = b"HTTP/1.1 %d X\r\nContent-Type: text/html\r\nX-Robots-Tag: %s\r\nConnection: close\r\n\r\n"
        return head % (200 if path in tags else 404, tags.get(path, b"")) + body

    with served(answer) as url:
        crawled = finish(wb, wb.crawls.start(f"{url}/", browser="always", **OPTIONS).id)
    assert outcomes(wb, crawled) == {"": "added", "no": "forbidden", "yes": "added"}
    texts = [wb.documents.get(document.id).text or "" for document in wb.documents.list()]
    assert all("SEEN1" in text and "SEEN2" in text and "NOT" not in text for text in texts)


OWNER = """
import asyncio
from workbench.crawling.browser import Browser
from workbench.crawling.egress import Guard

async def crawl():
    browser = Browser(Guard(["127.0.0.1"]), timeout=30, max_bytes=1_000_000)
    try:
        await browser._ensure_started()
        print(browser._keeper.pid, flush=True)
        await asyncio.sleep(60)
    finally:
        await browser.close()

asyncio.run(crawl())
"""


def test_ctrl_c_ends_the_browser_too() -> None:
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True) as owner:
        assert owner.stdout is not None
        browser = psutil.Process(int(owner.stdout.readline())).children(recursive=True)
        os.killpg(owner.pid, signal.SIGINT)  # as a terminal does
    _ended, left = psutil.wait_procs(browser, timeout=10)
    for process in left:
        process.kill()
    assert (len(browser) > 0, left) == (True, [])
