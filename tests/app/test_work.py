"""Long work that outlives its page."""

import threading

from workbench.app.uploads import bring_in, start_upload
from workbench.app.work import WORKS, Work
from workbench.errors import Cancelled, InvalidInput


def finish(key):
    """Wait for the thread of a piece of work."""
    thread = next((one for one in threading.enumerate() if one.name == key), None)
    if thread is not None:
        thread.join(30)
    return WORKS.all()[key]


def test_work_ends_with_its_outcome_and_stays_until_it_is_put_away():
    key = WORKS.start(Work("Count"), lambda work: "counted to 3")
    work = finish(key)
    assert (work.outcome, work.error, work.running) == ("counted to 3", "", False)
    WORKS.put_away(key)
    assert key not in WORKS.all()


def test_an_error_is_kept_as_its_sentence():
    def fail(work):
        raise InvalidInput("The title is empty; give it a name.")

    assert finish(WORKS.start(Work("Fail"), fail)).error == "The title is empty; give it a name."


def test_stopping_is_seen_by_the_work_and_running_work_is_not_put_away():
    seen = threading.Event()
    work = Work("Wait")

    def do(work):
        seen.wait(30)
        if work.stopping():
            raise Cancelled("Stopped; what was stored stays.")
        return "done"

    key = WORKS.start(work, do)
    WORKS.put_away(key)
    assert key in WORKS.all()
    work.stop()
    seen.set()
    assert finish(key).outcome == "Stopped; what was stored stays."


def test_the_share_weighs_rows_by_their_size():
    work = Work("Read", ["small", "large"], [100, 300])
    work.mark(0, "done", "added")
    work.mark(1, "busy", "reading")
    work.tell(0.5, "half")
    assert work.share == (100 + 300 / 2) / (100 + 300)


def test_each_uploaded_file_ends_with_what_became_of_it(wb):
    files = [("a.md", b"# A\n\nThe tide gauge."), ("b.pdf", b"%PDF-1.4 broken"), ("c.txt", b"")]
    key = start_upload(wb, files, source="Tides", tags=["sea"])
    rows = finish(key).rows
    assert [row.state for row in rows] == ["done", "failed", "failed"]
    assert rows[0].text == "added, 1 passage"
    assert "empty" in rows[2].text
    again = start_upload(wb, files[:1], source="Tides")
    assert [(row.state, row.text) for row in finish(again).rows] == [("same", "unchanged")]
    assert wb.knowledge.source("Tides").tags == ("sea",)


def test_a_stopped_upload_begins_no_further_file(wb):
    work = Work("Adding", ["a.md", "b.md"])
    work.stop()
    source = wb.knowledge.create_source("Tides")
    assert bring_in(wb, work, source.id, [("a.md", b"One."), ("b.md", b"Two.")]) == "2 unchanged or not begun"
    assert [row.text for row in work.rows] == ["not begun: stopped"] * 2
    assert wb.knowledge.count_documents() == 0
