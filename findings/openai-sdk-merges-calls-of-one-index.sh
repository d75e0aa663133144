#!/usr/bin/env bash
# openai 3.57.0 (PyPI), `client.chat.completions.stream`.
#
# Some gateways number every streamed tool call 0 and tell the calls apart by their `id`. The SDK joins calls by `index` alone: two
# calls with the ids `c1` and `c2` become one call with the id `c1c2`, the name `firstsecond` and the arguments `{}{}`. No error is
# raised, so a program that runs the call reports an unknown tool `firstsecond`, and neither call runs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet openai==3.57.0
cat > "$folder/try.py" <<'PY'
import http.server, json, threading
import openai


def chunk(delta, reason=None):
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return f"data: {json.dumps(body)}\n\n"


def call(id, name):
    return {"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}]}


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        events = [chunk(call("c1", "first")), chunk(call("c2", "second")), chunk({}, "tool_calls"), "data: [DONE]\n\n"]
        self.wfile.write("".join(events).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = openai.OpenAI(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0)
with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as stream:
    calls = stream.get_final_completion().choices[0].message.tool_calls
for each in calls:
    print(each.id, each.function.name, each.function.arguments)
PY
seen=$("$folder/venv/bin/python" "$folder/try.py")
echo "$seen"
[ "$seen" = 'c1c2 firstsecond {}{}' ]
