#!/usr/bin/env bash
# openai 3.57.0, anthropic 2.14.0 and groq 1.7.0 (PyPI); openai 7.59.0, @anthropic-ai/sdk 1.14.0 and ai 7.0.173 with @ai-sdk/anthropic 4.0.105
# (npm, Node 22.23.3). All have their default options.
#
# A server answers 429 with `Retry-After: 300`. Six clients do three different things. OpenAI's SDK for Python sends one request and raises. Both
# SDKs of Anthropic wait the five minutes within the call, and their `timeout` does not count there. OpenAI's SDK for JavaScript, Groq's SDK
# and the AI SDK ignore a wait of more than 60 seconds: they send the request again after their own delay, at first half a second or two seconds,
# and have used all three tries within ten seconds, long before the server wants them back. The READMEs name none of these limits, and the two
# SDKs of OpenAI disagree. Who passes a limit on to a user, or waits for hours, should set `max_retries` to 0 and read the header itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check openai==3.57.0 anthropic==2.14.0 groq==1.7.0
npm install --silent --no-audit --no-fund node@22.23.3 openai@7.59.0 @anthropic-ai/sdk@1.14.0 ai@7.0.173 @ai-sdk/anthropic@4.0.105
cat > try.mjs <<'JS'
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText } from "ai";
import OpenAI from "openai";

const [address] = process.argv.slice(2);
const at = (path) => ({ apiKey: "none", baseURL: `${address}/${path}`, timeout: 5000 });
const messages = [{ role: "user", content: "hi" }];
const calls = {
  "openai-js": () => new OpenAI(at("openai-js")).chat.completions.create({ model: "m", messages }),
  "anthropic-js": () => new Anthropic(at("anthropic-js")).messages.create({ model: "m", max_tokens: 9, messages }),
  "ai-sdk": () => generateText({ model: createAnthropic(at("ai-sdk"))("m"), prompt: "hi" }),
};
for (const [name, call] of Object.entries(calls)) {
  call().catch(() => console.log(name));
}
setTimeout(() => process.exit(0), 10000);
JS
cat > try.py <<'PY'
import collections, http.server, subprocess, sys, threading

import anthropic, groq, openai

requests, failed = collections.Counter(), set()


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        requests[self.path.split("/")[1]] += 1
        body = b'{"type": "error", "error": {"type": "rate_limit_error", "message": "later"}}'
        self.send_response(429)
        self.send_header("Retry-After", "300")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def call(name, module, create):
    try:
        create()
    except module.APIStatusError:
        failed.add(name)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address, prompt = f"http://127.0.0.1:{server.server_port}", [{"role": "user", "content": "hi"}]
options = lambda name: {"api_key": "none", "base_url": f"{address}/{name}", "timeout": 5}
calls = [
    ("openai-py", openai, lambda: openai.OpenAI(**options("openai-py")).chat.completions.create(model="m", messages=prompt)),
    ("anthropic-py", anthropic, lambda: anthropic.Anthropic(**options("anthropic-py")).messages.create(model="m", max_tokens=9, messages=prompt)),
    ("groq-py", groq, lambda: groq.Groq(**options("groq-py")).chat.completions.create(model="m", messages=prompt)),
]
for one in calls:
    threading.Thread(target=call, args=one, daemon=True).start()
script = subprocess.run(["node_modules/.bin/node", "try.mjs", address], stdout=subprocess.PIPE, text=True, check=True)
failed.update(script.stdout.split())
for name in ["openai-py", "anthropic-py", "anthropic-js", "openai-js", "groq-py", "ai-sdk"]:
    print(f"{name}: requests {requests[name]}, {'failed' if name in failed else 'still waits'}")
sys.stdout.flush()
PY
seen=$(venv/bin/python try.py)
echo "$seen"
[ "$seen" = 'openai-py: requests 1, failed
anthropic-py: requests 1, still waits
anthropic-js: requests 1, still waits
openai-js: requests 3, failed
groq-py: requests 3, failed
ai-sdk: requests 3, failed' ]
