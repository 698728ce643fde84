"""The one Workbench behind all pages: opened in the background, so that the first page is painted before it is warm."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.workbench import Workbench


class Engine:
    """Opens the workbench once a process and keeps what became of it; all methods may be called from any thread.

    A module-level value and not ``st.cache_resource``: the server opens it before the first visitor has a session.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._started = False
        self._workbench: Workbench | None = None
        self._error: WorkbenchError | None = None
        self._arguments: dict[str, Any] = {}
        self.warm = False
        self.changes = 0  # counts writes of this process, so that a page can tell that an answer is out of date

    def configure(self, **arguments: Any) -> None:
        """Set what ``Workbench.open`` is called with; before the first ``start``."""
        self._arguments = {name: value for name, value in arguments.items() if value is not None}

    def use(self, workbench: Workbench) -> None:
        """Serve a workbench that is open already."""
        self._workbench, self._error, self._started, self.warm = workbench, None, True, True
        self._settled.set()

    def start(self) -> None:
        """Begin to open in a thread, unless that was begun before."""
        with self._lock:
            if self._started:
                return
            self._started = True
        threading.Thread(target=self._open, name="open-workbench", daemon=True).start()

    def again(self) -> None:
        """Try once more after an error."""
        with self._lock:
            if self._error is None:
                return
            self._error, self._started = None, False
            self._settled.clear()
        self.start()

    def wait(self, seconds: float) -> Workbench | None:
        """Return the workbench when it is open within that time; None when it is still opening.

        Raises:
            WorkbenchError: it could not be opened; the sentence can be shown.
        """
        self.start()
        if not self._settled.wait(seconds):
            return None
        if self._error is not None:
            raise self._error
        return self._workbench

    @property
    def settled(self) -> bool:
        """True once it is known whether the workbench opens."""
        return self._settled.is_set()

    @property
    def workbench(self) -> Workbench:
        """The open workbench; the frame shows no page before there is one."""
        assert self._workbench is not None
        return self._workbench

    def changed(self) -> None:
        """Say that documents, sources or projects are no longer what they were."""
        self.changes += 1

    def close(self) -> None:
        """Give back the connections."""
        if self._workbench is not None:
            self._workbench.close()

    def _open(self) -> None:
        from workbench.workbench import Workbench

        try:
            self._workbench = Workbench.open(**self._arguments)
            if self._workbench.settings.run_worker:
                self._workbench.work()
        except WorkbenchError as error:
            self._error = error
        finally:
            self._settled.set()
        if self._workbench is not None:
            self._warm(self._workbench)

    def _warm(self, workbench: Workbench) -> None:
        """Load the model and the retrieval framework; a failure shows itself where the model is needed."""
        try:
            workbench.warm()
            workbench.search("warm", strategy="rerank", limit=1)
            if workbench.corpus.llm is not None:
                _ = workbench.corpus.llm.framework  # its import takes seconds, which the first answer would wait for
        except WorkbenchError:
            return
        self.warm = True


ENGINE = Engine()
