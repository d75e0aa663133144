#!/usr/bin/env bash
# anthropic 2.14.0 (PyPI) and @anthropic-ai/sdk 1.14.0 (npm, Node 22.23.3), their helpers that return the final message of a stream.
#
# A reply that reaches `max_tokens` within a tool call ends with half an input, such as `{"path": "a.txt", "lines": [10, 25` of a longer list
# or number. Neither SDK raises an error. Both close the JSON themselves, and they disagree on what stays: the one for Python keeps the cut
# number as if it were whole (`[10, 25]`, where the model may have been writing 2500), the one for JavaScript drops it (`[10]`). Both drop a
# text that was cut, with its key. The input is then a valid object that the model did not write, and where a field is optional it fits the
# tool's schema. Only `stop_reason` tells, so a program has to look at it before it runs a call.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check anthropic==2.14.0
npm install --silent --no-audit --no-fund node@22.23.3 @anthropic-ai/sdk@1.14.0
cat > try.mjs <<'JS'
import Anthropic from "@anthropic-ai/sdk";

const [baseURL] = process.argv.slice(2);
const client = new Anthropic({ apiKey: "none", baseURL, maxRetries: 0 });
const message = await client.messages.stream({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }).finalMessage();
console.log(JSON.stringify([message.stop_reason, message.content.map((block) => block.input)]));
JS
cat > try.py <<'PY'
import http.server, json, subprocess, threading

import anthropic

# Each text is what a model has written of a tool's input when its limit is reached.
INPUTS = ['{"path": "a.txt", "lines": 12', '{"path": "a.txt", "lines": [10, 25', '{"path": "a.txt", "text": "The first ha']


def events(text):
    yield {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m",
           "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "edit", "input": {}}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": None}, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events(INPUTS[int(self.path.split("/")[1])]):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
for number, text in enumerate(INPUTS):
    address = f"http://127.0.0.1:{server.server_port}/{number}"
    client = anthropic.Anthropic(api_key="none", base_url=address, max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
        message = stream.get_final_message()
    print(text)
    print("  Python    ", json.dumps([message.stop_reason, [block.input for block in message.content]]))
    script = subprocess.run(["node_modules/.bin/node", "try.mjs", address], stdout=subprocess.PIPE, text=True, check=True)
    print("  JavaScript", json.dumps(json.loads(script.stdout)))
PY
seen=$(venv/bin/python try.py)
echo "$seen"
[ "$seen" = '{"path": "a.txt", "lines": 12
  Python     ["max_tokens", [{"path": "a.txt", "lines": 12}]]
  JavaScript ["max_tokens", [{"path": "a.txt"}]]
{"path": "a.txt", "lines": [10, 25
  Python     ["max_tokens", [{"path": "a.txt", "lines": [10, 25]}]]
  JavaScript ["max_tokens", [{"path": "a.txt", "lines": [10]}]]
{"path": "a.txt", "text": "The first ha
  Python     ["max_tokens", [{"path": "a.txt"}]]
  JavaScript ["max_tokens", [{"path": "a.txt"}]]' ]
