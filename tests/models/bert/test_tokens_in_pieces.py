"""Texts of any size are tokenized in pieces: the tokens are the same, and other threads continue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from workbench.errors import Cancelled
from workbench.models.bert.encoder import MAX_PIECE_CHARS
from workbench.models.minilm import MINILM, MiniLMEncoder, read_tokenizer

pytestmark = pytest.mark.slow

PROSE = "Größe, naïveté and 東京: accents, capitals\tand other scripts; 🦮 don't.\r\n" * 2500  # 175,000 characters
TOKENS = MINILM.tokens


def test_the_tokens_of_a_long_text_are_those_of_one_call() -> None:
    whole = read_tokenizer()
    whole.no_truncation()
    encoding = whole.encode(PROSE, add_special_tokens=False)
    assert len(PROSE) > 10 * MAX_PIECE_CHARS
    assert TOKENS.spans(PROSE) == encoding.offsets
    assert TOKENS.ids([PROSE], 10**9) == [encoding.ids]
    assert TOKENS.ids([PROSE], 30_000) == [encoding.ids[:30_000]]


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "東京" * 50_000, " " * 100_000, ""], ids=["word", "no space", "space", ""]
)
def test_a_text_without_a_place_to_cut_is_tokenized_in_pieces_too(text: str) -> None:
    spans = TOKENS.spans(text)
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    (ids,) = TOKENS.ids([text], 10**9)
    assert len(ids) == len(spans)


def test_a_query_of_any_size_has_one_direction_for_each_token_span(minilm: MiniLMEncoder) -> None:
    for text in (PROSE, "x" * 100_000, "東京" * 50_000):
        query = minilm.encode_query(text)
        assert query.token_axes is not None
        assert len(query.token_axes) == len(query.token_spans) <= minilm.max_tokens


def test_many_texts_keep_their_order_whatever_their_sizes() -> None:
    texts = [PROSE[: 997 * number] for number in range(40)]
    assert TOKENS.ids(texts, 254) == [TOKENS.ids([text], 254)[0] for text in texts]


def test_the_caller_can_stop_while_texts_are_tokenized() -> None:
    def stop() -> None:
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        TOKENS.ids([PROSE], 254, stop)


def test_other_threads_continue_while_a_text_of_megabytes_is_tokenized() -> None:
    text = PROSE * 12  # 2 MB
    done = Event()
    turns = 0

    def tokenize() -> None:
        TOKENS.spans(text)
        done.set()

    worker = Thread(target=tokenize)
    worker.start()
    for _ in until(done):
        turns += 1
    worker.join()
    assert turns > len(text) // MAX_PIECE_CHARS // 2  # one call for the whole text would give a turn or two


def until(done: Event) -> Iterator[None]:
    """Wake up every switch interval until the event is set."""
    while not done.wait(sys.getswitchinterval()):
        yield
