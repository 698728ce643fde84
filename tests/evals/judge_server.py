"""A small OpenAI-compatible chat server that judges by shared words; it can also misbehave, as real ones do.

It answers questions by a sentence of a passage. Run as ``python -m tests.evals.judge_server MODE``; it prints its port,
then one line a request. Modes: good,
nonsense (prose where JSON is asked for), silent (never answers), busy (429 always), shaky (429 first, then good),
broken (no chat message), plain (good, but refuses JSON schemas). A mode that ends in .json is a file of recorded
verdicts (recorded_verdicts.json), returned in the form of our prompts and of those of ragas.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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


class Words:
    """Verdicts by shared words."""

    def split(self, text: str) -> list[str]:
        return sentences(text)

    def supports(self, evidence: str, statement: str) -> bool:
        return bool(supported(statement, evidence))

    def is_useful(self, passage: str, answer: str) -> bool:
        return bool(supported(answer, passage))

    def questions(self, text: str) -> tuple[list[str], bool]:
        return [f"What about {text}?"] * 3, False


class Recorded(Words):
    """Verdicts of a file: the statements of texts, which evidence supports them, useful passages, and questions."""

    def __init__(self, file: str) -> None:
        self.samples: list[dict[str, Any]] = json.loads(Path(file).read_text(encoding="utf-8"))

    def split(self, text: str) -> list[str]:
        return next(
            [statement for statement, _, _ in sample[f"{part}_statements"]]
            for sample in self.samples
            for part in ("answer", "reference")
            if sample[part] == text
        )

    def supports(self, evidence: str, statement: str) -> bool:
        """Evidence is the passages, or the other of answer and reference."""
        return next(
            other if evidence in (sample["answer"], sample["reference"]) else passages
            for sample in self.samples
            for part in ("answer", "reference")
            for text, passages, other in sample[f"{part}_statements"]
            if text == statement
        )

    def is_useful(self, passage: str, answer: str) -> bool:
        sample = next(sample for sample in self.samples if sample["reference"] == answer)
        return dict(zip(sample["passages"], sample["useful"], strict=True))[passage]

    def questions(self, text: str) -> tuple[list[str], bool]:
        sample = next(sample for sample in self.samples if sample["answer"] == text)
        return sample["questions"], sample["evasive"]


JUDGE = Recorded(MODE) if MODE.endswith(".json") else Words()
turns: dict[str, int] = {}  # how often ragas asked for a question about a text


def part(prompt: str, name: str, end: str) -> str:
    return prompt.partition(f"\n\n{name}:")[2].partition(f"\n\n{end}")[0].strip()


def reply_to_ours(prompt: str) -> str | None:
    """Return the answer to one of our prompts; None if it is another."""
    if prompt.startswith("How well does the text answer"):
        relevant = supported(part(prompt, "Question", "Text:"), part(prompt, "Text", "Answer with"))
        return json.dumps({"grade": "relevant" if relevant else "not"})
    if prompt.startswith("Split the text into statements"):
        evidence = part(prompt, "Evidence", "Answer with")
        statements = JUDGE.split(part(prompt, "Text", "Evidence:"))
        return json.dumps({"statements": [{"statement": one, "supported": JUDGE.supports(evidence, one)}
                                          for one in statements]})  # fmt: skip
    if prompt.startswith("Write three different questions"):
        questions, evasive = JUDGE.questions(part(prompt, "Text", "Answer with"))
        return json.dumps({"questions": questions, "evasive": evasive})
    if prompt.startswith("Does the passage help"):
        answer = part(prompt, "Answer to the question", "Passage:")
        return json.dumps({"useful": JUDGE.is_useful(part(prompt, "Passage", "Answer with"), answer)})
    if prompt.startswith("Write one question"):
        passage = part(prompt, "Passage", "Answer with")
        return (
            "Here it is:\n```json\n" + json.dumps({"question": f"What of {passage[:30]}?", "answer": passage}) + "```"
        )
    return None


def reply(prompt: str) -> str:
    """Fill in the JSON form that our prompts or ragas request, or answer a question from its passages."""
    ours = reply_to_ours(prompt)
    if ours is not None:
        return ours
    if "Now perform the same" not in prompt:
        question, *passages = re.split(r"\n\n\[\d+\]\n", prompt)
        numbered = [(one, number) for number, text in enumerate(passages, 1) for one in sentences(text)]
        best, number = max(numbered, key=lambda one: len(words(one[0]) & words(question)))
        return f"{best} [{number}]"
    given: dict[str, Any] = json.loads(prompt.rpartition("input: ")[2].rpartition("Output:")[0])
    schema = prompt.partition("JSON Schema:\n")[2][:2000]
    if "noncommittal" in schema:
        questions, evasive = JUDGE.questions(given["response"])
        turns[given["response"]] = turn = turns.get(given["response"], -1) + 1
        return json.dumps({"question": questions[turn % 3], "noncommittal": int(evasive)})
    if "attributed" in schema:
        rows = [{"statement": s, "reason": "words", "attributed": int(JUDGE.supports(given["context"], s))}
                for s in JUDGE.split(given["answer"])]  # fmt: skip
        return json.dumps({"classifications": rows})
    if "claims" in schema:
        return json.dumps({"claims": JUDGE.split(given["response"])})
    if "statements" in given:
        rows = [{"statement": s, "reason": "words", "verdict": int(JUDGE.supports(given["context"], s))}
                for s in given["statements"]]  # fmt: skip
        return json.dumps({"statements": rows})
    if "statements" in schema:
        return json.dumps({"statements": JUDGE.split(given["answer"])})
    return json.dumps({"reason": "words", "verdict": int(JUDGE.is_useful(given["context"], given["answer"]))})


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
        elif MODE == "plain" and "response_format" in body:
            self.send({"error": {"message": "response_format is not supported"}}, 400)
        elif MODE == "broken":
            self.send({"hello": "world"}, 200)
        else:
            text = "As a model I would rather not." if MODE == "nonsense" else reply(prompt)
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "finish_reason": "stop", "message": message, "delta": message}
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
            usage["total_tokens"] = sum(usage.values())
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
            if body.get("stream"):
                answer["object"] = "chat.completion.chunk"
            self.send(answer | {"choices": [choice], "usage": usage}, 200, stream=bool(body.get("stream")))

    def send(self, payload: dict[str, Any], status: int, stream: bool = False) -> None:
        data = json.dumps(payload).encode()
        data = b"data: " + data + b"\n\ndata: [DONE]\n\n" if stream else data
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
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
