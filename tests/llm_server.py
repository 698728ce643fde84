"""A small OpenAI-compatible chat endpoint in a separate process on loopback: real HTTP, predictable answers.

It reads the prompt as a very plain model would (by words in common), so that answers depend on what was sent. The
model's name chooses how it behaves:

    plain       answers                          slow     never answers
    busy-N      N times 429, then answers        down-N   N times 500, then answers
    garbled     a body that is no JSON           empty    JSON without choices
    chatty      prose where JSON was asked for   cut      breaks the stream off after some words
    refusing    NOT FOUND                        locked   401
    moody       another text every second time
    late-N      answers after N milliseconds     picky    400 for questions about honey

GET returns how often each prompt was sent, most often first; with ?start=TEXT, only of prompts that start so.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

WORD = re.compile(r"[^\W_]+")
SYNONYMS = {"feline": "cat", "canine": "dog", "automobile": "car"}
seen: Counter[tuple[str, str]] = Counter()
lock = threading.Lock()


@contextmanager
def serving() -> Iterator[str]:
    """Run the endpoint in a separate process and yield its base URL."""
    command = [sys.executable, str(Path(__file__).resolve())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


def words(text: str) -> set[str]:
    """Return the long words of a text."""
    return {word.lower() for word in WORD.findall(text) if len(word) > 3}


def reply(system: str, prompt: str) -> str:
    """Answer like a model that follows its instructions, by shared words."""
    question = re.search(r"Question: (.*)", prompt)
    asked = question.group(1) if question else prompt
    passages = re.findall(r"^\[(\d+)\]\n(.*?)(?=\n\n\[\d+\]\n|\Z)", prompt, re.DOTALL | re.MULTILINE)
    overlap = {number: len(words(asked) & words(text)) for number, text in passages}
    if "JSON list" in prompt:
        known = [SYNONYMS[word] for word in WORD.findall(asked.lower()) if word in SYNONYMS]
        return json.dumps([f"{word} habits" for word in known] or ["nothing else", asked])
    if "JSON object" in prompt:
        return "Here you are:\n" + json.dumps({number: min(10, 3 * count) for number, count in overlap.items()})
    if "Rewrite the last question" in prompt:
        return " ".join([*re.findall(r"^- (.*)$", prompt, re.MULTILINE)[:1], asked])
    if "Write the passage" in prompt:
        return " ".join(SYNONYMS.get(word, word) for word in WORD.findall(asked.lower()))
    best = max(overlap, key=lambda number: overlap[number], default=None)
    if best is None:
        return "I was asked: " + asked
    said = re.split(r"(?<=[.!?])\s", dict(passages)[best].split("\n")[-1])[0]
    return f"{said} [{best}] So it is written [{best}, 99]."


class Endpoint(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        start = parse_qs(urlsplit(self.path).query).get("start", [""])[0]
        with lock:
            counts = [times for (_, prompt), times in seen.most_common() if prompt.partition("|")[2].startswith(start)]
        self._send(200, json.dumps(counts).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model, messages = body["model"], body["messages"]
        kind, _, count = model.partition("-")
        with lock:
            key = (self.client_address[0], f"{model}|{messages[-1]['content']}")
            seen[key] += 1
            times = seen[key]
        if kind == "late":
            time.sleep(int(count) / 1000)
        if kind == "slow":
            self.connection.recv(1)  # until the caller gives up and closes
            return
        if kind in ("busy", "down") and times <= int(count):
            self._send(429 if kind == "busy" else 500, b'{"error": {"message": "later"}}', {"Retry-After": "0"})
            return
        if kind == "locked":
            self._send(401, b'{"error": {"message": "who are you"}}')
            return
        if kind == "picky" and "honey" in messages[-1]["content"].partition("\n")[0]:
            self._send(400, b'{"error": {"message": "not about honey"}}')
            return
        if kind in ("garbled", "empty"):
            self._send(200, b"{broken" if kind == "garbled" else b'{"object": "chat.completion"}')
            return
        text = reply(messages[0]["content"], messages[-1]["content"])
        text = {"refusing": "NOT FOUND", "chatty": "With pleasure, but no."}.get(kind, text)
        text = "Bees gather nectar." if kind == "moody" and times % 2 == 0 else text
        if body.get("stream"):
            self._stream(model, text, cut=kind == "cut")
        else:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._send(200, json.dumps(chat("chat.completion", model, [choice])).encode())

    def _stream(self, model: str, text: str, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = re.findall(r"\S+\s*", text)
        for piece in pieces[: len(pieces) // 2] if cut else pieces:
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            self._chunk(f"data: {json.dumps(chat('chat.completion.chunk', model, [choice]))}\n\n")
        if not cut:
            self._chunk("data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def chat(kind: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Wrap choices as the protocol requires."""
    return {"id": "1", "object": kind, "created": 0, "model": model, "choices": choices}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    print(server.server_address[1], flush=True)
    server.serve_forever()
