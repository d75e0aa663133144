#!/usr/bin/env python3
"""Runs the official suite for clients of the Model Context Protocol against `hermes`, and prints a row for each scenario.

    cargo build --bin hermes
    npm install --prefix /tmp/suite @modelcontextprotocol/conformance@0.2.0-alpha.12     # needs Node 22
    python3 tests/conformance/mcp.py --suite /tmp/suite [--node NODE] [--hermes target/debug/hermes] [SCENARIO[@VERSION] …]

The suite starts a server and this program again, as its client, with the address of the server. The client is Hermes with a home
of its own: `hermes mcp login`, with a browser that agrees at once, and then a session whose scripted model calls each tool once.
If a line of the session names a command for another or a wider login, the client runs it and repeats the session, as a user would.
"""

import argparse
import concurrent.futures
import http.server
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import urllib.request

SCENARIOS = """initialize tools_call sse-retry elicitation-sep1034-client-defaults
auth/metadata-default auth/metadata-var1 auth/metadata-var2 auth/metadata-var3 auth/basic-cimd
auth/scope-from-www-authenticate auth/scope-from-scopes-supported auth/scope-omitted-when-undefined
auth/scope-step-up auth/scope-retry-limit
auth/token-endpoint-auth-basic auth/token-endpoint-auth-post auth/token-endpoint-auth-none auth/pre-registration
auth/2025-03-26-oauth-metadata-backcompat auth/2025-03-26-oauth-endpoint-fallback
auth/resource-mismatch auth/offline-access-scope auth/offline-access-not-supported
auth/iss-supported auth/iss-not-advertised auth/iss-supported-missing auth/iss-wrong-issuer auth/iss-unexpected
auth/iss-normalized auth/metadata-issuer-mismatch json-schema-ref-no-deref
json-schema-2020-12-preservation@2025-11-25
tools_call@2026-07-28 request-metadata@2026-07-28 http-standard-headers@2026-07-28 http-custom-headers@2026-07-28
http-invalid-tool-headers@2026-07-28 sep-2322-client-request-state@2026-07-28 json-schema-ref-no-deref@2026-07-28
auth/metadata-default@2026-07-28 auth/scope-step-up@2026-07-28 auth/scope-retry-limit@2026-07-28
auth/authorization-server-migration@2026-07-28""".split()


class Model(http.server.BaseHTTPRequestHandler):
    """Calls each tool of the server once, and then says that it is done."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tools = [tool["function"] for tool in request.get("tools", [])]
        tools = [tool for tool in tools if tool["name"].startswith("mcp_suite_")]
        if request["messages"][-1]["role"] != "tool" and tools:
            calls = [
                {
                    "index": at,
                    "id": f"call_{at}",
                    "type": "function",
                    "function": {"name": tool["name"], "arguments": json.dumps(arguments(tool, tools))},
                }
                for at, tool in enumerate(tools)
            ]
            deltas = [({"role": "assistant", "tool_calls": calls}, None), ({}, "tool_calls")]
        else:
            deltas = [({"role": "assistant", "content": "Done."}, None), ({}, "stop")]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for delta, end in deltas:
            choice = {"index": 0, "delta": delta, "finish_reason": end}
            chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


def arguments(tool, tools):
    """Those that the suite wants, or the required ones."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    for call in context.get("toolCalls", []):
        if tool["name"] == f"mcp_suite_{call['name']}":
            return call["arguments"]
    if tool["name"] == "mcp_suite_json_schema_echo":
        # The suite compares what the model saw.
        return {"schema": next(other["parameters"] for other in tools if other["name"] != tool["name"])}
    schema = tool["parameters"]
    values = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    return {name: values.get(properties[name].get("type"), "text") for name in schema.get("required", [])}


def client(hermes, url):
    """What the suite starts for each scenario."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        home, work = pathlib.Path(folder, "home"), pathlib.Path(folder, "work")
        home.mkdir()
        work.mkdir()
        browser = pathlib.Path(folder, "browser")
        browser.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(__file__)} --browser \"$1\"\n")
        browser.chmod(0o755)
        base = f"http://127.0.0.1:{model.server_port}/v1"
        settings = {
            "model": {"provider": "custom", "default": "scripted", "base_url": base, "api_key": "x", "context_length": 100000},
            "approvals": {"allow": ["suite"]},
            "mcp_servers": {"suite": {"url": url, "accept_defaults": True}},
        }
        (home / "config.yaml").write_text(json.dumps(settings))
        variables = {**os.environ, "HERMES_HOME": str(home), "BROWSER": str(browser)}
        variables["SUITE_SECRET"] = context.get("client_secret", "")

        def run(*words):
            ran = subprocess.run([hermes, *words], cwd=work, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            print(f"$ hermes {shlex.join(words)}\n{ran.stdout}{ran.stderr}", file=sys.stderr)
            return ran

        known = ["--client-id", context["client_id"]] if context.get("client_id") else []
        if known and context.get("client_secret"):
            known += ["--client-secret-env", "SUITE_SECRET"]
        ends = []
        if scenario.startswith("auth/"):
            ends.append(run("mcp", "login", "suite", "--browser", *known).returncode)
        for _ in range(2):
            session = run("-z", "go")
            ends.append(session.returncode)
            wanted = re.search(r"hermes mcp login suite(?: --scope '([^']*)')?`", session.stderr)
            if not wanted:
                break
            wider = ["--scope", wanted[1]] if wanted[1] else []
            ends.append(run("mcp", "login", "suite", "--browser", *wider, *known).returncode)
        if any(ends):
            sys.exit(1)


def scenario(name, suite, node, hermes):
    """A row of the table: what the suite says."""
    command = f"{sys.executable} {os.path.abspath(__file__)} --hermes {hermes} --client"
    program = pathlib.Path(suite, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
    plain, _, version = name.partition("@")
    asked = [node, str(program), "client", "--command", command, "--scenario", plain, "--timeout", "90000", "--verbose"]
    asked += ["--spec-version", version] if version else []
    ran = subprocess.run(asked, capture_output=True, text=True)
    text = ran.stdout + ran.stderr
    counts = re.search(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", text)
    verdict = "no result" if not counts else f"{counts[1]} of {counts[2]} checks, {counts[3]} failed, {counts[4]} warnings"
    if counts and counts[2] == "0":
        return name, "does not apply", verdict, text
    if counts is None or counts[3] != "0" or (ran.returncode != 0 and counts[4] == "0"):
        return name, "fails", verdict, text
    return name, "passes" if counts[4] == "0" else "passes with a warning", verdict, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", help="the folder in which npm installed the suite")
    parser.add_argument("--node", default="node", help="Node 22 or later")
    parser.add_argument("--hermes", default="target/debug/hermes")
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--browser", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    given = parser.parse_args()
    if given.browser:
        # It follows the login server back to Hermes.
        urllib.request.urlopen(given.browser, timeout=30).read()
        return
    hermes = os.path.abspath(given.hermes)
    if given.client:
        client(hermes, given.client)
        return
    if not given.suite:
        parser.error("--suite is missing")
    failed = False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        work = lambda name: scenario(name, given.suite, given.node, hermes)
        for name, outcome, verdict, text in pool.map(work, given.scenarios or SCENARIOS):
            failed |= outcome == "fails"
            shown = "` at ".join(name.split("@"))
            shown = f"`{shown}" if "@" in name else f"`{shown}`"
            print(f"| {shown} | {outcome} | {verdict} |", flush=True)
            if given.scenarios:
                print(text, file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
