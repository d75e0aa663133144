#!/usr/bin/env bash
# mcp-server-kubernetes 4.1.7 and @notionhq/notion-mcp-server 2.5.2 (npm); kubectl of kubernetes-client 1.20.5+really1.20.2 (Debian 12).
#
# With ALLOW_ONLY_READONLY_TOOLS, mcp-server-kubernetes lists 8 tools. One of them, `kubectl_context`, is marked `readOnlyHint: true`, and
# with `operation: "set"` it rewrites the user's kubeconfig: from then on every kubectl with this file, also outside the agent, talks to
# the other cluster. Notion's server errs the other way: its hints follow the HTTP method, so its search and its query of a data source,
# which are POST requests, are marked `destructiveHint: true` just as the removal of a block. An agent host that asks its user by these
# hints stays silent where the cluster changes, and asks at every search.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes > npm.log
npm install --silent --no-audit --no-fund mcp-server-kubernetes@4.1.7 @notionhq/notion-mcp-server@2.5.2
apt-get download --quiet kubernetes-client=1.20.5+really1.20.2-1.1+deb12u1 > apt.log 2>&1
dpkg -x kubernetes-client_*.deb program
cat > kubeconfig <<'YAML'
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:9"}}, {name: production, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: user, user: {token: "false"}}]
contexts: [{name: test, context: {cluster: test, user: user}}, {name: production, context: {cluster: production, user: user}}]
current-context: test
YAML
cat > try.py <<'PY'
import json, os, subprocess

environment = {"PATH": f"{os.getcwd()}/program/usr/bin:{os.environ['PATH']}", "HOME": os.getcwd(), "KUBECONFIG": f"{os.getcwd()}/kubeconfig",
               "ALLOW_ONLY_READONLY_TOOLS": "true", "NOTION_TOKEN": "false"}


class Session:
    def __init__(self, program):
        self.server = subprocess.Popen([f"node_modules/.bin/{program}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env=environment)
        self.count = 0
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
        raise SystemExit("the server ended")

    def tools(self):
        return {tool["name"]: tool for tool in self.ask("tools/list")["tools"]}

    def end(self):
        self.server.stdin.close()
        self.server.terminate()
        self.server.wait()


def current():
    return subprocess.run(["kubectl", "config", "current-context"], capture_output=True, text=True, check=True, env=environment).stdout.strip()


session = Session("mcp-server-kubernetes")
tools = session.tools()
tool = tools["kubectl_context"]
print(len(tools), "tools, kubectl_context", json.dumps(tool["annotations"]))
before = current()
session.ask("tools/call", {"name": "kubectl_context", "arguments": {"operation": "set", "name": "production"}})
session.end()
print(f"context of kubectl: {before}, then {current()}")
session = Session("notion-mcp-server")
tools = session.tools()
session.end()
for name in ["API-post-search", "API-query-data-source", "API-delete-a-block"]:
    print(name, tools[name]["annotations"].get("destructiveHint"))
PY
seen=$(python3 try.py)
echo "$seen"
[ "$seen" = '8 tools, kubectl_context {"readOnlyHint": true}
context of kubectl: test, then production
API-post-search True
API-query-data-source True
API-delete-a-block True' ]
