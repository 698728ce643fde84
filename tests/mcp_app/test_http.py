"""The server over HTTP: access control, the plain routes, and many concurrent callers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import psutil
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import cloned_database
from tests.mcp_app.agent import MODES
from tests.mcp_app.processes import TOKEN, over_http
from workbench import Workbench
from workbench.settings import Settings

PATIENCE = 120  # seconds: the first call waits for the workbench, on a busy machine for long
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def shop(
    server_url: str, template_database: str, test_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Workbench]]:
    """One server process with a token for the module, and its workbench: a project with a folder and a document."""
    root = tmp_path_factory.mktemp("files")
    with cloned_database(server_url, template_database) as database:
        values: dict[str, Any] = {"home": test_home, "database_url": database, "file_roots": str(root)}
        settings = Settings(**values, embedding_model="hash", _env_file=None)
        with Workbench.open(settings=settings) as wb:
            wb.projects.create("Shop", id="proj_1")
            wb.projects.create_folder("proj_1", "API")
            source = wb.sources.create("Endpoints", project="proj_1", folder="API", tags=["rest-api"]).id
            wb.documents.create(text="The login endpoint takes words.", title="Login", source=source)
            with over_http(settings, WORKBENCH_MCP_TOKEN=TOKEN) as base:
                yield base, wb


@pytest.fixture
def url(shop: tuple[str, Workbench]) -> str:
    """The address of the server."""
    return shop[0]


@pytest.fixture
def web(url: str) -> Iterator[httpx.Client]:
    """A plain HTTP client with the token."""
    with httpx.Client(base_url=url, headers=WITH_TOKEN, timeout=PATIENCE) as http:
        yield http


@asynccontextmanager
async def connected(url: str, mode: str, path: str = "/mcp") -> AsyncIterator[Client]:
    """Yield the SDK's client with the token."""
    limits = httpx2.Limits(max_connections=250)
    async with (
        httpx2.AsyncClient(headers=WITH_TOKEN, timeout=PATIENCE, limits=limits) as http,
        Client(streamable_http_client(f"{url}{path}", http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", MODES)
def test_both_eras_are_served_and_a_5_mb_argument_is_refused_with_a_sentence(url: str, mode: str) -> None:
    async def script() -> Any:
        async with connected(url, mode) as client:
            large = {"action": "create", "content": "x" * 5_000_000}
            found = await client.call_tool("search_knowledge_base", {"query": "login"})
            return found, await client.call_tool("manage_document", large)

    found, refused = asyncio.run(script())
    assert json.loads(found.content[0].text)["results"][0]["document_title"] == "Login"
    assert refused.is_error
    assert "the limit is 4,000,000" in json.loads(refused.content[0].text)["error"]


def test_only_who_may_is_let_in_and_everyone_else_is_reported_why(url: str) -> None:
    sources = f"{url}/api/rag/sources"
    cases: list[tuple[str, dict[str, str], int, str]] = [
        (f"{url}/health", {}, 200, "ok"),
        (sources, WITH_TOKEN, 200, "Endpoints"),
        (sources, {}, 401, "The bearer token is missing or invalid"),
        (sources, {"Authorization": f"Bearer {TOKEN}x"}, 401, "missing or invalid"),
        (sources, {"Authorization": f"Basic {TOKEN}"}, 401, "missing or invalid"),
        (f"{url}/mcp", {}, 401, "missing or invalid"),
        (f"{url}/health", {"Host": "evil.example"}, 421, "This Host is not allowed"),
        (sources, WITH_TOKEN | {"Origin": "https://evil.example"}, 403, "WORKBENCH_MCP_ALLOWED_ORIGINS"),
        (sources, WITH_TOKEN | {"Origin": "http://localhost:6274"}, 200, "Endpoints"),
    ]
    for address, headers, status, said in cases:
        answer = httpx.get(address, headers=headers, timeout=PATIENCE)
        assert (answer.status_code, said in answer.text) == (status, True), (address, headers, answer.text)


def test_pages_of_allowed_origins_may_ask_and_read_the_answer(url: str) -> None:
    page = {"Origin": "http://localhost:6274"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    with httpx.Client(base_url=url, timeout=PATIENCE) as http:
        may = http.options("/mcp", headers=page | asks)  # browsers ask without the token
        assert (may.status_code, may.headers["Access-Control-Allow-Origin"]) == (200, page["Origin"])
        assert "POST" in may.headers["Access-Control-Allow-Methods"]
        assert "authorization" in may.headers["Access-Control-Allow-Headers"].lower()
        read = http.get("/api/rag/sources", headers=page | WITH_TOKEN)
        assert (read.status_code, read.headers["Access-Control-Allow-Origin"]) == (200, page["Origin"])
        refused = http.get("/api/rag/sources", headers=page)  # a page reads why it was refused
        assert (refused.status_code, refused.headers["Access-Control-Allow-Origin"]) == (401, page["Origin"])
        other = http.options("/mcp", headers={"Origin": "https://evil.example"} | asks)
        assert (other.status_code, "Access-Control-Allow-Origin" in other.headers) == (403, False)


def test_hosts_and_origins_can_be_added_by_settings(make_settings: Callable[..., Settings]) -> None:
    more = {"WORKBENCH_MCP_ALLOWED_HOSTS": "wiki.lan", "WORKBENCH_MCP_ALLOWED_ORIGINS": "https://wiki.lan"}
    with over_http(make_settings(), **more) as base:
        named = {"Host": "wiki.lan", "Origin": "https://wiki.lan"}
        assert httpx.get(f"{base}/health", headers=named, timeout=PATIENCE).status_code == 200
        assert httpx.get(f"{base}/health", headers={"Host": "other.lan"}, timeout=PATIENCE).status_code == 421


def test_the_http_routes_answer_as_the_tools_do(web: httpx.Client) -> None:
    sources = web.get("/api/rag/sources", params={"scope": "project", "project_id": "proj_1"})
    assert [source["title"] for source in sources.json()["sources"]] == ["Endpoints"]
    folders = web.get("/api/projects/proj_1/folders").json()
    assert (folders["project_title"], folders["folders"][0]["name"]) == ("Shop", "API")
    arguments = {"query": "login", "scope": "project", "project_id": "proj_1", "folder_name": "API"}
    found = web.post("/api/rag/query", json=arguments).json()
    assert (found["results"][0]["title"], found["folder_filter"]) == ("Login", "API")
    tagged = web.post("/api/rag/query", json={"query": "login", "tags": ["none"]}).json()
    assert (tagged["results"], tagged["tag_filters"]) == ([], ["none"])


def test_an_unchanged_answer_is_304_and_a_changed_one_is_not(shop: tuple[str, Workbench], web: httpx.Client) -> None:
    headers: dict[str, str] = {}
    for path in ("/api/rag/sources", "/api/projects/proj_1/folders"):
        first = web.get(path)
        headers = {"If-None-Match": f'"other", W/{first.headers["ETag"]}'}
        again = web.get(path, headers=headers)
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    shop[1].projects.create_folder("proj_1", "New")
    assert web.get("/api/projects/proj_1/folders", headers=headers).status_code == 200


def test_http_errors_have_the_status_and_the_same_json(web: httpx.Client) -> None:
    cases = [
        (web.get("/api/projects/proj_x/folders"), 404, "Project not found: proj_x", "folders"),
        (web.get("/api/rag/sources", params={"scope": "here"}), 400, "Invalid scope: here", "sources"),
        (web.get("/api/rag/sources", params={"odd": "1"}), 400, "Unknown argument: odd", "sources"),
        (web.post("/api/rag/query", json={}), 400, "Missing required parameter: query", "results"),
        (web.post("/api/rag/query", json={"query": "q", "scope": "project"}), 400, "Missing", "results"),
        (web.post("/api/rag/query", json={"query": "q", "project_id": "no"}), 404, "Project not found", "results"),
        (web.post("/api/rag/query", content=b"{"), 400, "The body is not a JSON object", "results"),
    ]
    other = web.get("/api/projects/proj_x/folders", params={"project_id": "proj_y"})
    cases.append((other, 404, "Project not found: proj_x", "folders"))
    for answer, status, error, empty in cases:
        body = answer.json()
        assert (answer.status_code, body["success"], body[empty]) == (status, False, []), body
        assert body["error"].startswith(error)


def test_a_call_that_takes_too_long_is_the_servers_failure(make_settings: Callable[..., Settings]) -> None:
    with over_http(make_settings(), WORKBENCH_MCP_CALL_SECONDS="0.0001") as url:
        answer = httpx.post(f"{url}/api/rag/query", json={"query": "words"}, timeout=120)
    assert (answer.status_code, answer.json()["success"]) == (503, False)
    assert "was stopped after 0.0001 seconds" in answer.json()["error"]


def test_an_address_or_method_that_is_not_served_is_reported_in_the_same_json(web: httpx.Client) -> None:
    gone, wrong = web.get("/api/rag/nothing"), web.get("/api/rag/query")
    assert (gone.status_code, gone.json()["error"]) == (404, "Not found: /api/rag/nothing")
    assert (wrong.status_code, wrong.json()["suggestion"], wrong.headers["Allow"]) == (405, "Use POST", "POST")


def test_a_body_beyond_the_limit_is_refused_whether_or_not_it_reports_its_length(web: httpx.Client) -> None:
    part = b"x" * 2**20
    for content in (part * 9, iter([part] * 9)):
        answer = web.post("/api/rag/query", content=content)
        assert (answer.status_code, "too large" in answer.json()["error"]) == (413, True)


def test_the_openapi_document_describes_the_three_routes(web: httpx.Client) -> None:
    document = web.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {"/api/rag/sources", "/api/rag/query", "/api/projects/{project_id}/folders"}
    body = document["paths"]["/api/rag/query"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"folder_name", "tags", "query"} <= set(body["properties"])
    assert "304" in document["paths"]["/api/rag/sources"]["get"]["responses"]


def serving(url: str) -> psutil.Process:
    """Return the server's process: the child that listens on the address."""
    port = httpx.URL(url).port
    children = psutil.Process().children(recursive=True)
    return next(one for one in children if any(port == of.laddr.port for of in one.net_connections("tcp")))


def megabytes(process: psutil.Process) -> float:
    """Return the memory of a process in MB."""
    return process.memory_info().rss / 2**20


def test_600_calls_more_take_no_more_memory_than_200(shop: tuple[str, Workbench]) -> None:
    url, _ = shop
    server = serving(url)

    async def searches(client: Client) -> None:
        calls = [client.call_tool("search_knowledge_base", {"query": f"login {n}"}) for n in range(200)]
        assert not any(answer.is_error for answer in await asyncio.gather(*calls))

    async def script() -> list[float]:
        async with connected(url, "2026-07-28") as client:
            await searches(client)  # fills every pool, thread and cache
            held = [megabytes(server)]
            for _ in range(3):
                await searches(client)
                held.append(megabytes(server))
            return held

    held = asyncio.run(script())
    assert max(held) - held[0] < 20, held


def test_200_calls_at_once_mixed_with_uploads_lose_nothing(shop: tuple[str, Workbench]) -> None:
    url, wb = shop
    for number in range(10):
        text = f"# Upload {number}\n\nFresh words number{number}."
        (Path(wb.settings.file_roots) / f"up{number}.md").write_text(text)

    async def script() -> list[Any]:
        async with connected(url, "2026-07-28") as client:
            searches = [client.call_tool("search_knowledge_base", {"query": f"login {n}"}) for n in range(190)]
            uploads = [{"action": "create", "file_path": f"up{n}.md"} for n in range(10)]
            creates = [client.call_tool("manage_document", upload) for upload in uploads]
            return await asyncio.gather(*searches[:95], *creates, *searches[95:])

    server = serving(url)
    answers = asyncio.run(script())
    assert [answer.content[0].text for answer in answers if answer.is_error] == []
    assert len(answers) == 200
    assert megabytes(server) < 400
    source = wb.sources.get("Uploads")
    assert {item.title for item in wb.documents.list(source_id=source.id)} == {f"Upload {n}" for n in range(10)}
    assert wb.search("number7", strategy="keyword")[0].document_title == "Upload 7"


@pytest.mark.parametrize("path", ["/health", "/api/rag/sources", "/api/openapi.json", "/mcp"])
def test_a_trailing_slash_is_served_without_a_redirect(url: str, path: str) -> None:
    plain, slashed = (httpx2.get(f"{url}{path}{end}", headers=WITH_TOKEN, timeout=PATIENCE) for end in ("", "/"))
    assert (slashed.status_code, slashed.text, "location" in slashed.headers) == (plain.status_code, plain.text, False)


def test_a_client_is_served_at_an_address_with_a_trailing_slash(url: str) -> None:
    async def script() -> Any:
        async with connected(f"{url}/mcp/", MODES[0], "") as client:
            return await client.call_tool("search_knowledge_base", {"query": "login"})

    assert json.loads(asyncio.run(script()).content[0].text)["results"][0]["document_title"] == "Login"


def test_messages_that_are_odd_get_the_answers_that_stdio_gives(web: httpx.Client) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    start = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode()
    accepts = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

    def post(content: bytes, **headers: str) -> httpx.Response:
        return web.post("/mcp", content=content, headers=accepts | headers)

    begun = post(b"\xef\xbb\xbf\r\n" + start)
    assert (begun.status_code, '"protocolVersion"' in begun.text) == (200, True), begun.text
    session = {"mcp-session-id": begun.headers["mcp-session-id"]}
    ping = {"jsonrpc": "2.0", "method": "ping"}
    odd: list[tuple[bytes, object, str]] = [
        (json.dumps(ping | {"id": None}).encode(), None, "the id is null"),
        (json.dumps(ping | {"id": 1.5}).encode(), None, "not a JSON-RPC 2.0 message"),
        (json.dumps(ping | {"id": [7]}).encode(), None, "not a JSON-RPC 2.0 message"),
        (json.dumps({"jsonrpc": "2.0", "id": 8}).encode(), 8, "not a JSON-RPC 2.0 message"),
        (b"", None, "not JSON"),
        (b"{", None, "not JSON"),
        (json.dumps(ping | {"id": 3}).encode("utf-16"), None, "not JSON"),
    ]
    for content, number, sentence in odd:
        answer = post(content, **session)
        assert (answer.status_code, answer.json()["id"]) == (400, number), content
        assert sentence in answer.json()["error"]["message"]
    batch = post(json.dumps([ping | {"id": 5}, ping, ping | {"id": "b"}]).encode(), **session)
    assert [error["id"] for error in batch.json()] == [5, "b"] and "no batches" in batch.text
    cut = b'{"name": "search_knowledge_base", "arguments": {"query": "login \\ud83d caf\xe9"}}'
    found = post(b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": ' + cut + b"}", **session)
    assert (found.status_code, "Endpoints" in found.text or "Login" in found.text) == (200, True), found.text
