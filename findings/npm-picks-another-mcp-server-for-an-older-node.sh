#!/usr/bin/env bash
# npm 11.19.1 under Node 20.20.2 and Node 22.23.3 (npm), which start @mapbox/mcp-server by `npx -y @mapbox/mcp-server`.
#
# Without a version, npm takes the newest release only if its `engines` fit the running Node; otherwise it takes an older release that
# fits, and says nothing. The newest release (0.14.0 at the time of writing) wants Node 22. So the same line starts 0.14.0 with 29 tools
# under Node 22, and 0.2.0 with 8 tools under Node 20, and no tool has the same name in both. A list of allowed tools made on one machine
# allows nothing on the next, without an error of npm or the server. `@latest` looks like the same request, but it is a tag: npm follows
# it under Node 20 too, with a warning, and the server runs there all the same. Who keeps or compares tool lists should key them by the
# version that the server reports, not by the command. The newest release can move, so the check is: an older version, other tools, no warning;
# and `@latest` gives what Node 22 gets.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for node in 20.20.2 22.23.3; do
  npm install --silent --no-audit --no-fund --prefix "node-$node" "node@$node" npm@11.19.1
done
cat > try.py <<'PY'
import json, os, subprocess, sys


def start(node, package):
    """Starts the server with npx, and returns its version, the names of its tools and what stood on standard error."""
    home = f"{os.getcwd()}/node-{node}/node_modules"
    environment = {**os.environ, "HOME": os.getcwd(), "PATH": f"{home}/.bin:{os.environ['PATH']}", "npm_config_cache": f"{os.getcwd()}/cache-{node}",
                   "npm_config_ignore_scripts": "true", "npm_config_update_notifier": "false", "MAPBOX_ACCESS_TOKEN": "pk.eyJ1IjoiZXhhbXBsZSJ9.false"}
    with open("errors", "w+") as errors:
        server = subprocess.Popen([f"{home}/.bin/npx", "-y", package], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)

        def send(message):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        def answer(id):
            for line in server.stdout:
                message = json.loads(line)
                if message.get("id") == id and "method" not in message:
                    return message["result"]
            raise SystemExit("the server ended")

        send({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}}})
        version = answer(1)["serverInfo"]["version"]
        send({"method": "notifications/initialized"})
        send({"id": 2, "method": "tools/list"})
        names = {tool["name"] for tool in answer(2)["tools"]}
        server.stdin.close()
        server.terminate()
        server.wait()
        errors.seek(0)
        text = errors.read()
    print(f"Node {node}, {package}: {version}, {len(names)} tools, {'a' if 'EBADENGINE' in text else 'no'} warning of npm about Node")
    return tuple(int(part) for part in version.split(".")), names, text


old, old_names, old_errors = start("20.20.2", "@mapbox/mcp-server")
new, new_names, _ = start("22.23.3", "@mapbox/mcp-server")
tag, tag_names, _ = start("20.20.2", "@mapbox/mcp-server@latest")
print(f"tools of the same name: {len(old_names & new_names)}")
if not (old < new == tag and old_names and new_names == tag_names and old_names != new_names and "EBADENGINE" not in old_errors):
    sys.exit(1)
PY
python3 try.py
