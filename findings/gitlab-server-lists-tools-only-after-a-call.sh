#!/usr/bin/env bash
# @zereight/mcp-gitlab 2.1.64 (npm), with its default toolsets, a false token and an address for GitLab on loopback where nothing listens.
#
# The server lists 118 tools. One of them, `discover_tools`, is marked `readOnlyHint: true`, yet a call of it with the category
# "pipelines" adds 56 tools to the session, 7 of them named `delete_...`; the server sends `notifications/tools/list_changed` before it
# answers. Until then `list_pipelines` is not listed, although the description of a listed tool refers to it by name. A client that lists
# once at the start never offers these tools to a model. One that lets calls marked read-only pass unasked lets a model widen its own list
# of tools. One that keeps the list for the next session offers tools that this session does not list: it begins with 118 again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes > npm.log
npm install --silent --no-audit --no-fund @zereight/mcp-gitlab@2.1.64
cat > try.py <<'PY'
import json, os, re, subprocess

environment = {"PATH": os.environ["PATH"], "HOME": os.getcwd(), "GITLAB_DISABLE_VERSION_CHECK": "true",
               "GITLAB_PERSONAL_ACCESS_TOKEN": "false", "GITLAB_API_URL": "http://127.0.0.1:9/api/v4"}


class Session:
    def __init__(self):
        self.server = subprocess.Popen(["node_modules/.bin/mcp-gitlab"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env=environment)
        self.count, self.notices = 0, []
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.server.stdin.flush()

    def ask(self, method, params={}):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        for line in self.server.stdout:
            message = json.loads(line)
            if message.get("id") == self.count and "method" not in message:
                return message["result"]
            self.notices.append(message["method"])
        raise SystemExit("the server ended")

    def tools(self):
        return {tool["name"]: tool for tool in self.ask("tools/list")["tools"]}

    def end(self):
        self.server.stdin.close()
        self.server.terminate()
        self.server.wait()


session = Session()
before = session.tools()
named = [name for name, tool in before.items() if re.search(r"\blist_pipelines\b", tool["description"])]
session.notices.clear()
session.ask("tools/call", {"name": "discover_tools", "arguments": {"category": "pipelines"}})
notices = " ".join(session.notices)
after = session.tools()
session.end()
added = after.keys() - before.keys()
print("discover_tools has readOnlyHint", before["discover_tools"]["annotations"]["readOnlyHint"])
print(len(before), "tools, list_pipelines listed:", "list_pipelines" in before, "- named by", ", ".join(named))
print("sent during the call:", notices)
print(len(after), "tools, list_pipelines listed:", "list_pipelines" in after, "- new ones named delete:", sum(name.startswith("delete_") for name in added))
session = Session()
print(len(session.tools()), "tools in the next session")
session.end()
PY
seen=$(python3 try.py)
echo "$seen"
[ "$seen" = 'discover_tools has readOnlyHint True
118 tools, list_pipelines listed: False - named by list_merge_request_pipelines
sent during the call: notifications/tools/list_changed
174 tools, list_pipelines listed: True - new ones named delete: 7
118 tools in the next session' ]
