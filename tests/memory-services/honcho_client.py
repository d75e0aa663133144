"""Compares the requests of the memory `honcho` with those of the vendor's client.

usage: honcho_client.py REQUESTS

REQUESTS is a JSON list of requests that the memory has sent: method, path, query and body of each. The client does the same work against a
server in this process, which records its requests. A request of the memory is right if the client sends one with the same method and
path (names and ids aside), with at least its parameters, and its parameters in the body have the same types. Differences
end the program with status 1, and so does an operation below that the memory never carries out, because nothing would be compared.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from honcho import Honcho

TIME = "2026-01-01T00:00:00Z"
RECORDED = []
# Below these, texts are the caller's own.
FREE = {"metadata", "filters", "configuration"}


def named(name):
    return {
        "id": name, "workspace_id": "w", "metadata": {}, "configuration": {}, "created_at": TIME, "is_active": True,
    }


def page(items):
    return {"items": items, "total": len(items), "page": 1, "size": 50, "pages": 1}


MESSAGE = {
    "id": "m1", "content": "hi", "peer_id": "ada", "session_id": "s", "workspace_id": "w", "metadata": {},
    "created_at": TIME, "token_count": 1,
}
CONCLUSION = {
    "id": "c1", "content": "x", "observer_id": "hermes", "observed_id": "ada", "session_id": "s", "created_at": TIME,
    "level": "explicit",
}
CONTEXT = {"id": "s", "messages": [], "summary": None, "peer_representation": "", "peer_card": None}


def answer(method, shape, body):
    """What the documented server answers, as far as the client needs it to go on."""
    end = shape.rsplit("/", 1)[-1]
    match (method, end):
        case ("POST", "list"):
            return 200, page([CONCLUSION if "conclusions" in shape else MESSAGE])
        case ("POST", "query" | "conclusions"):
            return 201, [CONCLUSION]
        case ("DELETE", _):
            return 204, None
        case ("POST", "messages" | "search"):
            return 201, [MESSAGE]
        case ("PUT", "{message}"):
            return 200, MESSAGE
        case (_, "chat"):
            return 200, {"content": "yes"}
        case (_, "card"):
            return 200, {"peer_card": ["IDENTITY: Ada"]}
        case ("GET", "context") if "{session}" in shape:
            return 200, CONTEXT
        case ("GET", "context"):
            return 200, {"peer_id": "hermes", "target_id": "ada", "representation": "", "peer_card": None}
        case ("GET", "peers"):
            return 200, page([named("ada")])
    return 201, named(body.get("id", "s") if isinstance(body, dict) else "s")


def shape_of(path):
    """A path without names and ids."""
    for kind in ("workspace", "session", "peer", "conclusion", "message"):
        path = re.sub(rf"(/{kind}s)/(?!(?:list|query|search)(?:/|$))[^/]+", rf"\1/{{{kind}}}", path)
    return path


def fields(body, place=""):
    """The keys of a body with the types of their values; items of a list are taken together."""
    found = {}
    if isinstance(body, list):
        for item in body:
            found.update(fields(item, place + "[]"))
    elif isinstance(body, dict):
        for key, value in body.items():
            name = f"{place}.{key}" if place else key
            if value is not None:
                found[name] = {bool: "boolean", int: "number", float: "number", str: "text"}.get(type(value), "structure")
            if key not in FREE:
                found.update(fields(value, name))
    return found


def fields_at(shape, body):
    if shape.endswith("/sessions/{session}/peers") and isinstance(body, dict):
        # The keys are names of peers.
        return fields(list(body.values()))
    return fields(body)


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def any_method(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw) if raw else None
        url = urlsplit(self.path)
        RECORDED.append((self.command, url.path, url.query, body, self.headers.get("authorization")))
        status, told = answer(self.command, shape_of(url.path), body)
        out = b"" if told is None else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    do_GET = do_POST = do_PUT = do_DELETE = any_method


def work(url):
    """Everything that the memory does, done with the client."""
    from honcho.api_types import SessionPeerConfig

    honcho = Honcho(base_url=url, api_key="key", workspace_id="hermes")
    agent, ada = honcho.peer("hermes"), honcho.peer("ada", metadata={})
    honcho.get_metadata()
    session = honcho.session("app", metadata={})
    session.peers()
    session.add_peers([(ada, SessionPeerConfig(observe_me=True, observe_others=True))])
    stored = session.add_messages([ada.message("hi", metadata={"hermes_turn": "s:1"}, created_at=TIME)])
    list(session.messages(filters={"metadata": {"hermes_turn": "s:1"}}, page=1, size=50))
    session.update_message(stored[0].id, {"hermes_rewound": True})
    session.context(summary=True, tokens=100, peer_target="ada", peer_perspective="hermes", search_query="tea")
    agent.context(target="ada", search_query="tea")
    agent.get_card(target="ada")
    agent.set_card(["IDENTITY: Ada"], target="ada")
    honcho.search("tea", filters={"peer_perspective": "ada"}, limit=20)
    ada.search("tea", limit=20)
    agent.chat("What?", target="ada", session="app", reasoning_level="low")
    about = agent.conclusions_of("ada")
    about.create([{"content": "x", "session_id": "app"}])
    list(about.list(page=1, size=20))
    about.query("tea", top_k=20)
    about.delete("c1")


def by_shape(requests):
    """The query and body parameters of requests by method and shape, those of equal requests together."""
    shapes = {}
    for method, path, query, body, authorization in requests:
        shape = shape_of(path)
        known = shapes.setdefault((method, shape), {"query": set(), "body": {}, "key": set(), "count": 0})
        known["query"] |= set(parse_qs(query, keep_blank_values=True))
        known["body"].update(fields_at(shape, body))
        known["key"].add((authorization or "").split(" ")[0])
        known["count"] += 1
    return shapes


def differences(own, client):
    for (method, shape), sent in sorted(own.items()):
        known = client.get((method, shape))
        if known is None:
            yield f"{method} {shape}: the client sends no such request"
            continue
        if sent["key"] != known["key"]:
            yield f"{method} {shape}: the key is sent as {sorted(sent['key'])}, by the client as {sorted(known['key'])}"
        for name in sorted(sent["query"] - known["query"]):
            yield f"{method} {shape}: the client has no query parameter `{name}`, only {sorted(known['query'])}"
        for name, kind in sorted(sent["body"].items()):
            if known["body"].get(name) != kind:
                yield f"{method} {shape}: `{name}` is a {kind}, with the client {known['body'].get(name, 'absent')}"
    for method, shape in sorted(set(client) - set(own)):
        yield f"{method} {shape}: the memory has sent no such request, so nothing was compared"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        own = by_shape([tuple(request) for request in json.load(file)])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    work(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    found = list(differences(own, by_shape(RECORDED)))
    for line in found:
        print(line)
    if not found:
        count = sum(sent["count"] for sent in own.values())
        print(f"{count} requests of {len(own)} kinds are as the client sends them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
