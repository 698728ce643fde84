"""The page image of a hit, with its lines marked and its printed number, over every interface but the app."""

from __future__ import annotations

import base64
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import BlobResourceContents
from PIL import Image

from mcp_app.server import create_server
from tests.ingestion import files
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.display import heading_text
from workbench.errors import InvalidInput, NotFound
from workbench.ingestion.readers.pdf.words import PageLine, read_page_lines
from workbench.services.page_images import find_boxes

FILLER = "The survey of the coast was continued through the summer and closed in the first week of autumn."
LONG = [(680 - 14 * line, f"Entry {line}: {FILLER}") for line in range(14)]
STORY = [
    [(700, "The keeper's log"), *LONG, (400, "A fog signal of two blasts was sounded every minute.")],
    [(700, "The tender's log"), *LONG, (400, "Coal and oil came by the tender on the third of May."), (40, "41")],
    [(700, "The inspector's log"), *LONG, (40, "42")],
    [(700, "The engineer's log"), *LONG, (40, "43")],
]


@pytest.fixture
def logs(wb: Workbench, tmp_path: Path) -> Workbench:
    path = tmp_path / "logs.pdf"
    path.write_bytes(files.paged_pdf(STORY))
    wb.ingest(path, source="Logs")
    return wb


def marks(picture: Image.Image) -> np.ndarray:
    shown = np.asarray(picture.convert("RGB"), dtype=int)
    return np.argwhere((shown[:, :, 0] > 200) & (shown[:, :, 2] < 180)) / shown.shape[:2]


def test_the_lines_of_a_hit_are_marked_on_the_picture_of_its_page(logs: Workbench) -> None:
    text = "A fog signal of two blasts was sounded every minute."
    document = logs.documents.list()[0]
    whole = logs.documents.get(document.id).text or ""
    start = whole.index(text)
    picture = logs.pages.picture(document.id, 1, (start, start + len(text)))
    places = marks(picture)
    top, left = places.min(axis=0)
    bottom, right = places.max(axis=0)
    assert abs(top - (842 - 410) / 842) < 0.02 and abs(bottom - (842 - 397) / 842) < 0.02
    assert abs(left - 72 / 595) < 0.01 and 0.4 < right < 0.6


@pytest.mark.parametrize("by_id", [False, True])
def test_a_hit_gives_its_page_and_a_notebook_can_show_it(logs: Workbench, by_id: bool) -> None:
    hit = logs.search("coal and oil by the tender", "keyword")[0]
    picture = logs.pages.of_passage(hit.passage_id if by_id else hit)
    assert len(marks(picture)) > 100
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_a_hit_of_a_search_a_comparison_and_an_answer_gives_its_page_by_itself(logs: Workbench) -> None:
    query = "coal and oil by the tender"
    hits = [
        logs.search(query, "keyword")[0],
        logs.compare(query, ["keyword"]).strategies["keyword"][0],
        logs.ask(query, "keyword").passages[0],
    ]
    whole = logs.pages.of_passage(hits[0])
    assert all(hit.page_image() == whole for hit in hits)
    assert "draw_page" not in hits[0].to_dict()


def test_a_hit_that_was_copied_to_another_process_is_the_same_and_reports_how_to_get_its_page(logs: Workbench) -> None:
    hit = logs.search("coal and oil by the tender", "keyword")[0]
    copied = pickle.loads(pickle.dumps(hit))
    assert copied == hit
    with pytest.raises(InvalidInput, match=r"wb\.pages\.of_passage"):
        copied.page_image()


def test_a_page_has_its_count_and_the_number_that_it_bears(logs: Workbench) -> None:
    hit = logs.search("coal and oil by the tender", "keyword")[0]
    assert (hit.metadata["page"], hit.metadata["page_label"], hit.page) == (2, "41", "2 (41)")
    assert heading_text(hit).endswith("page 2 (41)")
    assert logs.pages.label(hit.document_id, 2) == "41"
    assert logs.pages.label(hit.document_id, 1) == ""


@pytest.mark.parametrize("mode", MODES)
def test_agents_read_the_picture_as_a_resource(logs: Workbench, mode: str) -> None:
    agent = Agent(create_server(logs, toolsets=["all"]), mode)
    found = agent("search_knowledge_base", query="coal and oil by the tender")
    hit = found["results"][0]
    assert (hit["metadata"]["page"], hit["metadata"]["page_label"]) == (2, "41")
    [content] = agent.talk(lambda client: client.read_resource(f"passage://{hit['chunk_id']}/page")).contents
    assert isinstance(content, BlobResourceContents)
    assert content.mime_type == "image/png"
    assert len(marks(Image.open(io.BytesIO(base64.b64decode(content.blob))))) > 100
    with pytest.raises(MCPError, match=r"There is no passage|not found: psg_none"):
        agent.talk(lambda client: client.read_resource("passage://psg_none/page"))


def test_a_text_without_pages_reports_that_it_has_none(wb: Workbench) -> None:
    wb.documents.create(text="The bell buoy rang.", title="Bell")
    with pytest.raises(NotFound, match="Only PDFs and pictures have page images"):
        wb.pages.of_passage(wb.search("bell buoy")[0])


def test_words_that_are_stored_in_another_order_are_marked_all_the_same() -> None:
    lines = [
        PageLine(("oats", "rye"), ((0, 0, 0.1, 0.1), (0.1, 0, 0.2, 0.1))),
        PageLine(("elm", "oak"), ((0.5, 0, 0.6, 0.1), (0.6, 0, 0.7, 0.1))),
        PageLine(("wheat", "maize"), ((0, 0.2, 0.1, 0.3), (0.1, 0.2, 0.2, 0.3))),
        PageLine(("fir", "yew"), ((0.5, 0.2, 0.6, 0.3), (0.6, 0.2, 0.7, 0.3))),
    ]
    text = "oats rye wheat maize | elm oak fir yew"
    assert find_boxes(text, (text.index("|"), len(text)), lines) == [(0.5, 0, 0.7, 0.1), (0.5, 0.2, 0.7, 0.3)]


def test_a_page_that_is_not_there_is_refused(logs: Workbench) -> None:
    data = files.paged_pdf(STORY)
    assert read_page_lines(data, 1)[0].words == ("The", "keeper's", "log")
    with pytest.raises(Exception, match="page 9"):
        read_page_lines(data, 9)
