"""Replies of the network: an answer, or the reason there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

USER_AGENT = "RAGWorkbench/0.1 (+crawler; obeys robots.txt)"
AGENT_TOKEN = "RAGWorkbench"  # the name robots.txt knows us by
REDIRECTS = frozenset((301, 302, 303, 307, 308))
GONE = frozenset((404, 410))
WORTH_RETRYING = frozenset((408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524))


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; header names in lower case, ``body`` decompressed, ``seconds`` from asking to the last byte."""

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    seconds: float = 0.0
    rendered: bool = False

    @property
    def media_type(self) -> str:
        """The content type without its parameters; "" where none was given."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset the content type declares."""
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset" and value.strip():
                return value.strip().strip("\"'")
        return None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an address is not fetched.

    ``outcome``: "forbidden" if the site says no, "not_allowed" if this workbench may not go there, "failed" if the
    site could not be asked. Only the first says anything about the document that an earlier crawl stored.
    """

    outcome: str
    reason: str


class FetchFailed(Exception):
    """No usable answer; ``retry`` when another try may help, ``retry_after`` seconds where the host named them."""

    def __init__(
        self, reason: str, *, retry: bool, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.retry, self.retry_after, self.status = reason, retry, retry_after, status
