"""The first experiment on an empty workbench: a job loads the sample, then the experiment starts."""

import threading

import pytest
from streamlit.testing.v1 import AppTest

from evals.background import make_runners
from evals.experiments.catalogue import Experiments
from evals.test_sets.store import TestSetStore
from workbench import Workbench
from workbench.app.state.shared import OPENING
from workbench.app.widgets.looks import escape_markdown
from workbench.jobs.sharing import Assignment

LONG = 120.0  # seconds until a test gives up


def page():
    from workbench.app.evaluate.page import page
    from workbench.app.shell.navigation import PageEntry
    from workbench.app.shell.work import show_tray

    page()
    show_tray(PageEntry("evaluate", "Evaluate", page, jobs=("experiment", "optimise", "learn")))


def texts(app):
    return " ".join([*(part.value for part in app.markdown), *(part.proto.body for part in app.get("html"))])


@pytest.fixture
def begun(wb):
    """The page after "Run experiment" on an empty workbench, without a worker."""
    OPENING.use(wb)
    app = AppTest.from_function(page)
    app.default_timeout = 30
    app.run()
    return app.button(key="experiment_go").click().run()


def test_the_sample_comes_in_as_a_job_and_the_experiment_starts_after_it(wb, begun):
    assert not begun.exception
    (job,) = wb.jobs.in_view()
    assert (job.title, job.status) == ("Import test set sample, then run an experiment", "queued")
    assert (TestSetStore(wb).list(), Experiments(wb).list()) == ([], [])  # nothing was done while the page was waiting
    assert "The experiment starts when the sample is loaded" in texts(begun)
    assert begun.button(key=f"stop_{job.id}").label == "Cancel"

    wb.work(make_runners(wb))
    done = wb.jobs.wait(job.id, timeout=LONG)
    (experiment,) = Experiments(wb).list()
    assert (done.status, done.result["experiment"]) == ("completed", experiment.id)
    assert len(experiment.cells) == 4 and experiment.test_set_title == "sample"
    assert {shown.kind for shown in wb.jobs.in_view()} == {"test_set", "experiment"}
    begun.run()
    assert not begun.exception
    assert begun.query_params["experiment"] == experiment.id and "planned" not in begun.query_params
    assert "Open experiment" in texts(begun)


def test_it_can_be_cancelled_and_resumed(wb, begun):
    (job,) = wb.jobs.in_view()
    begun.button(key=f"stop_{job.id}").click().run()
    assert not begun.exception and "planned" not in begun.query_params
    assert any("was not loaded" in toast.value for toast in begun.toast)
    begun.button(key=f"resume_{job.id}").click().run()
    wb.work(make_runners(wb))
    assert wb.jobs.wait(job.id, timeout=LONG).result["experiment"] == Experiments(wb).list()[0].id


def test_a_second_try_of_the_job_takes_the_experiment_that_the_first_one_made(wb, begun):
    (job,) = wb.jobs.in_view()
    wb.work(make_runners(wb))
    wb.jobs.wait(job.id, timeout=LONG)
    # as if a worker died before it reported success
    outcome = make_runners(wb)["test_set"](Assignment(wb.jobs.get(job.id), wb.jobs.table, threading.Event()))
    (experiment,) = Experiments(wb).list()
    assert outcome.result["experiment"] == experiment.id
    assert len(wb.jobs.list(kind="experiment")) == 1


def test_a_budget_can_stop_an_experiment_in_which_only_the_judge_costs_money(make_settings, llm_url):
    with Workbench.open(settings=make_settings(llm_base_url=llm_url, llm_model="plain", llm_price="2/10")) as wb:
        OPENING.use(wb)
        app = AppTest.from_function(page, default_timeout=30).run()
        assert "build_budget" not in app.session_state  # no part of it has a price
        app.selectbox(key="build_ragas").set_value("llm").run()
        app.number_input(key="build_limit").set_value(4)
        app.number_input(key="build_budget").set_value(0.01)
        app.button(key="experiment_go").click().run()
        assert not app.exception and not app.error
        wb.work(make_runners(wb))
        (job,) = wb.jobs.in_view()
        assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
        (job,) = wb.jobs.list(kind="experiment")
        assert wb.jobs.wait(job.id, timeout=LONG).status == "completed"
        (experiment,) = Experiments(wb).list()
        assert sum(bool(cell.judge) for cell in experiment.cells) == 4
        assert (experiment.status, experiment.budget) == ("stopped", 0.01)
        app.query_params["experiment"] = experiment.id
        app.run()
        assert [one.value for one in app.warning] == [escape_markdown(experiment.message)]
        assert not any("budget" in caption.value for caption in app.caption)  # the notice already has the message
        assert [one.label for one in app.number_input] == ["Budget ($)"]
