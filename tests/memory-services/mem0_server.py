"""The HTTP interface of a self-hosted mem0 server over the real library, with a scripted model and a store on disk.

usage: mem0_server.py FOLDER

It prints its address, and ends with its standard input. The library runs as its users run it: its client of OpenAI's interface talks to
a model in this process, and its memories are in Qdrant's embedded store in FOLDER. The model extracts each sentence of the user as a
fact; a text's vector counts its words, so texts with common words are near each other. A sentence with `unspeakable` makes the
model fail. MEM0_API_KEY is the key that requests need.
"""

import json
import os
import re
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# Before the library is imported: it reports its use to its vendor otherwise.
os.environ["MEM0_TELEMETRY"] = "False"
FOLDER = sys.argv[1]
os.environ["MEM0_DIR"] = os.path.join(FOLDER, "mem0")

from mem0 import Memory  # noqa: E402

DIMENSIONS = 256
KEY = os.environ["MEM0_API_KEY"]


class Handler(BaseHTTPRequestHandler):
    """JSON in, JSON out."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        return json.loads(raw) if raw else {}

    def say(self, status, answer):
        out = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)


def vector(text):
    counts = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return counts if any(counts) else [1.0] * DIMENSIONS


def extract(prompt):
    """The sentences of the user in the section of new messages."""
    new = re.search(r"## New Messages\n(.*?)(?:\n## |\Z)", prompt, re.S).group(1)
    said = re.findall(r"^user: (.*)$", new, re.M)
    sentences = [part.strip() for line in said for part in re.split(r"(?<=[.!?]) ", line)]
    facts = [text for text in sentences if text and not text.endswith("?")]
    return {"memory": [{"id": str(at), "text": text, "attributed_to": "user"} for at, text in enumerate(facts)]}


class Model(Handler):
    def do_POST(self):
        body = self.body()
        if self.path.endswith("/embeddings"):
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self.say(200, {"object": "list", "data": data, "model": body["model"], "usage": usage})
            return
        prompt = body["messages"][-1]["content"]
        if "unspeakable" in prompt:
            self.say(400, {"error": {"message": "the model refuses", "type": "invalid_request_error"}})
            return
        message = {"role": "assistant", "content": json.dumps(extract(prompt))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        self.say(200, {
            "id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice], "usage": usage,
        })


def library(model):
    settings = {"api_key": "scripted", "openai_base_url": model}
    return Memory.from_config({
        "llm": {"provider": "openai", "config": {"model": "scripted", **settings}},
        "embedder": {"provider": "openai", "config": {"model": "scripted", "embedding_dims": DIMENSIONS, **settings}},
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "collection_name": "memories", "embedding_model_dims": DIMENSIONS,
                "path": os.path.join(FOLDER, "qdrant"), "on_disk": True,
            },
        },
        "history_db_path": os.path.join(FOLDER, "history.db"),
    })


class Mem0(Handler):
    # One request for a connection: the embedded store has one user, so a thread serves all requests.
    protocol_version = "HTTP/1.0"
    memory = None

    def answer(self):
        if self.headers.get("x-api-key") != KEY:
            return 401, {"detail": "Invalid API key"}
        url = urlsplit(self.path)
        ids = {key: values[0] for key, values in parse_qs(url.query).items()}
        body = self.body()
        parts = url.path.strip("/").split("/")
        try:
            return self.routed(parts, ids, body)
        except ValueError as error:
            return 400, {"detail": str(error)}
        except Exception as error:  # What the model or the store did wrong is a 502 for the server's clients.
            code = "provider_bad_request" if "the model refuses" in str(error) else "unknown"
            return 502, {"detail": str(error), "code": code, "request_id": "1"}

    def routed(self, parts, ids, body):
        match (self.command, parts):
            case ("POST", ["memories"]):
                known = ("user_id", "agent_id", "run_id", "metadata", "infer")
                given = {key: body[key] for key in known if key in body}
                return 200, self.memory.add(body["messages"], **given)
            case ("POST", ["search"]):
                known = ("filters", "top_k", "threshold")
                return 200, self.memory.search(body["query"], **{key: body[key] for key in known if key in body})
            case ("GET", ["memories"]):
                return 200, self.memory.get_all(filters=ids)
            case ("GET", ["memories", memory]):
                return 200, self.memory.get(memory)
            case ("PUT", ["memories", memory]):
                return 200, self.memory.update(memory, body["text"])
            case ("DELETE", ["memories", memory]):
                return 200, self.memory.delete(memory)
        return 404, {"detail": "Not Found"}

    def any_method(self):
        self.say(*self.answer())

    do_GET = do_POST = do_PUT = do_DELETE = any_method


def main():
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    Mem0.memory = library(f"http://127.0.0.1:{model.server_port}/v1")
    server = HTTPServer(("127.0.0.1", 0), Mem0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()
    server.shutdown()
    Mem0.memory.close()


if __name__ == "__main__":
    main()
