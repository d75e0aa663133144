#!/usr/bin/env python3
"""Real tool servers, for measurements: not part of the tests.

    python3 servers.py install FOLDER             installs the servers of servers.json there, with npm and pip, and records their lists
    python3 servers.py sessions FOLDER [--only NAME,…] [--call TOOL=ARGUMENTS …] HERMES …
                                                  sessions with them, for each binary: a row each

Then `hermes lab tools questions.yaml --lists FOLDER/lists` counts how often the search on the shelf finds the right tool.
The servers run with the rights of who starts this, without a sandbox.
"""

import argparse
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SERVERS = json.loads((pathlib.Path(__file__).parent / "servers.json").read_text())


def install(folder):
    """Installs each server into a folder of its own, and records its list with `tools/list`."""
    for name in ("fsroot", "obsvault/.obsidian", "overleafproj", "lists"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "overleafproj" / "main.tex").write_text("\\documentclass{article}\\begin{document}Hello\\end{document}\n")
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}
    user = {"name": "u", "user": {"token": "false"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    kube = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "users": [user]}
    (folder / "kube.yaml").write_text(json.dumps({**kube, "current-context": "c"}))
    npm(folder / "inst" / "node22", ["node@22"])
    for server in SERVERS:
        place = folder / "inst" / server["name"]
        sign = "@" if server["from"] == "npm" else "=="
        packages = [f"{server['package']}{sign}{server['version']}", *server.get("extra", [])]
        try:
            (npm if server["from"] == "npm" else pip)(place, packages)
            tools = listed(folder, server)
        except Exception as error:
            print(f"{server['name']}: {error}", file=sys.stderr)
            continue
        (folder / "lists" / f"{server['name']}.json").write_text(json.dumps(tools, ensure_ascii=False))
        print(f"{server['name']}: {len(tools)} tools", flush=True)


def npm(place, packages):
    if not (place / "node_modules").exists():
        own = {**os.environ, "PUPPETEER_SKIP_DOWNLOAD": "1", "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(["npm", "install", *quiet, "--prefix", str(place), *packages], check=True, env=own)


def pip(place, packages):
    if not (place / "bin").exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", *packages], check=True)


def command(folder, server):
    """The command of a server, with whole paths, and its variables."""
    place = folder / "inst" / server["name"]
    words = [word.replace("{folder}", str(folder)) for word in server["command"]]
    words = [os.path.normpath(place / word) if (place / word).exists() else word for word in words]
    return words, {name: value.replace("{folder}", str(folder)) for name, value in server.get("env", {}).items()}


def listed(folder, server):
    words, variables = command(folder, server)
    with tempfile.TemporaryDirectory() as home:
        own = {**os.environ, "HOME": home, **variables}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(words, env=own, cwd=home, text=True, **pipes)
        killer = threading.Timer(90, process.kill)
        killer.start()
        try:
            me = {"name": "recorder", "version": "1"}
            begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": me}
            ask(process, 1, "initialize", begin)
            send(process, {"method": "notifications/initialized"})
            tools, number, cursor = [], 2, None
            while True:
                page = ask(process, number, "tools/list", {"cursor": cursor} if cursor else {})
                tools, number, cursor = tools + page["tools"], number + 1, page.get("nextCursor")
                if not cursor:
                    return tools
        finally:
            killer.cancel()
            process.kill()
            process.wait()


def send(process, message):
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


def ask(process, number, method, params):
    send(process, {"id": number, "method": method, "params": params})
    for line in process.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if message.get("id") == number and "method" not in message:
            return message["result"]
        if "method" in message and "id" in message:
            send(process, {"id": message["id"], "result": {"roots": []} if message["method"] == "roots/list" else {}})
    raise RuntimeError("it ended before it answered")


class Model(http.server.ThreadingHTTPServer):
    """A model that makes the given calls, one for each request, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self, calls):
        super().__init__(("127.0.0.1", 0), Answer)
        self.calls, self.requests = calls, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body.get("tools"):
            self.server.requests.append((time.time(), body))
        made = sum(message["role"] == "assistant" for message in body["messages"])
        if body.get("tools") and made < len(self.server.calls):
            name, arguments = self.server.calls[made]
            call = {"index": 0, "id": f"call_{made}", "type": "function", "function": {"name": name, "arguments": arguments}}
            deltas = [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]
        else:
            deltas = [({"role": "assistant", "content": "Done."}, None), ({}, "stop")]
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        choices = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": why}]} for delta, why in deltas]
        text = "".join(f"data: {json.dumps(choice)}\n\n" for choice in choices) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def sessions(folder, binary, only, calls):
    """Three sessions in a fresh home: without lists, with those that the first one kept, and with the lists of all servers."""
    servers = {}
    for server in SERVERS:
        if not only or server["name"] in only:
            (program, *words), variables = command(folder, server)
            own = {"command": program, "args": words, "env": variables, "sandbox": "off", "connect_timeout": 60}
            servers[server["name"]] = own
    with tempfile.TemporaryDirectory() as home:
        model = Model(calls)
        address = f"http://127.0.0.1:{model.server_address[1]}/v1"
        chosen = {"provider": "custom", "base_url": address, "default": "m", "context_length": 200_000}
        config = {"model": chosen, "mcp_servers": servers, "approvals": {"allow": list(servers)}}
        (pathlib.Path(home) / "config.yaml").write_text(json.dumps(config))
        work = pathlib.Path(home) / "work"
        work.mkdir()
        own = {**os.environ, "HERMES_HOME": home, "CUSTOM_API_KEY": "k", "OPENAI_API_KEY": "k"}
        run = {"cwd": work, "env": own, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for kind in ("no list kept", "second session", "all lists kept"):
            if kind == "all lists kept":
                for name in servers:
                    subprocess.run([binary, "mcp", "test", name], **run)
            model.requests.clear()
            begun, peak = time.time(), 0
            process = subprocess.Popen([binary, "-z", "hello"], **run)
            while process.poll() is None:
                try:
                    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                    peak = max(peak, *(int(kb) for kb in re.findall(r"VmHWM:\s+(\d+)", status)), 0)
                except (OSError, TypeError):
                    pass
                time.sleep(0.02)
            moment, request = model.requests[0]
            tools = request["tools"]
            size = len(json.dumps(tools, separators=(",", ":")))
            print(
                f"{kind}: request after {moment - begun:.2f} s, end after {time.time() - begun:.2f} s, {len(tools)} tools with "
                f"{size} bytes, host {peak >> 10} MiB",
                flush=True,
            )
        for message in model.requests[-1][1]["messages"]:
            if message["role"] == "tool":
                print("  result:", " ".join(message["content"].split())[:160])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["install", "sessions"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--call", action="append", default=[])
    parser.add_argument("hermes", nargs="*")
    given = parser.parse_intermixed_args()
    folder = given.folder.resolve()
    if given.what == "install":
        return install(folder)
    calls = [tuple(call.split("=", 1)) for call in given.call]
    for binary in given.hermes:
        print(binary)
        sessions(folder, shutil.which(binary) or binary, [name for name in given.only.split(",") if name], calls)


if __name__ == "__main__":
    main()
