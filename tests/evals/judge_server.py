"""A small OpenAI-compatible chat server that judges by shared words; it can also misbehave, as real ones do.

Run as ``python -m tests.evals.judge_server MODE``; it prints its port, then one line a request. Modes: good,
nonsense (prose where JSON is asked for), silent (never answers), busy (429 always), shaky (429 first, then good),
broken (no chat message).
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
WORD = re.compile(r"\w+")
never = threading.Event()
seen: set[str] = set()


def words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text) if len(word) > 3}


def supported(statement: str, context: str) -> int:
    """Return 1 if at least half of a statement's words are in the context."""
    asked = words(statement)
    return int(len(asked & words(context)) >= len(asked) / 2)


def sentences(text: str) -> list[str]:
    return [piece.strip() for piece in re.split(r"(?<=[.!?])\s+", text) if piece.strip()]


def reply(prompt: str) -> str:
    """Answer a question from its passages, or fill in the JSON form that ragas requests."""
    if prompt.endswith("Grade:"):
        question, text = prompt.partition("Question: ")[2].split("\n\nText: ")
        return "relevant" if supported(question, text) else "not"
    if "Now perform the same" not in prompt:
        passages, question = prompt.split("\n\nQuestion: ")
        best = max(sentences(passages), key=lambda one: len(words(one) & words(question)))
        return re.sub(r"^\[\d+\] ", "", best)
    given: dict[str, Any] = json.loads(prompt.rpartition("input: ")[2].rpartition("Output:")[0])
    schema = prompt.partition("JSON Schema:\n")[2][:2000]
    if "passage" in given:
        return json.dumps({"question": f"What of {given['passage'][:30]}?", "answer": given["passage"]})
    if "noncommittal" in schema:
        return json.dumps({"question": f"What about {given['response']}?", "noncommittal": 0})
    if "attributed" in schema:
        rows = [{"statement": s, "reason": "words", "attributed": supported(s, given["context"])}
                for s in sentences(given["answer"])]  # fmt: skip
        return json.dumps({"classifications": rows})
    if "claims" in schema:
        return json.dumps({"claims": sentences(given["response"])})
    if "statements" in given:
        rows = [{"statement": s, "reason": "words", "verdict": supported(s, given["context"])}
                for s in given["statements"]]  # fmt: skip
        return json.dumps({"statements": rows})
    if "statements" in schema:
        return json.dumps({"statements": sentences(given["answer"])})
    return json.dumps({"reason": "words", "verdict": supported(given["answer"], given["context"])})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Serve /chat/completions according to the mode."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = body["messages"][-1]["content"]
        sys.stdout.write(
            "asked\n"
        )  # in one piece: two requests at once would mix the words of a print and its line end
        sys.stdout.flush()
        if MODE == "silent":
            never.wait()
        elif MODE == "busy" or (MODE == "shaky" and prompt not in seen):
            seen.add(prompt)
            self.send({"error": {"message": "too many requests"}}, 429)
        elif MODE == "broken":
            self.send({"hello": "world"}, 200)
        else:
            text = "As a model I would rather not." if MODE == "nonsense" else reply(prompt)
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
            usage["total_tokens"] = sum(usage.values())
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
            self.send(answer | {"choices": [choice], "usage": usage}, 200)

    def send(self, payload: dict[str, Any], status: int) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
