#!/usr/bin/env bash
# anthropic 2.14.0 and openai 3.57.0 (PyPI), their helpers that return the final message of a stream.
#
# A proxy that loses its own connection to the model often closes its response to the client correctly. The stream then has no stop
# reason and no last event (`message_stop`, `[DONE]`). Neither SDK raises an error: `get_final_message()` and
# `get_final_completion()` return the text so far, with `stop_reason` and `finish_reason` None. Only a program that looks at this
# field can tell half an answer from a whole one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet anthropic==2.14.0 openai==3.57.0
cat > "$folder/try.py" <<'PY'
import http.server, json, threading
import anthropic, openai

MESSAGES = [
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m",
     "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "The first half"}},
]
CHAT = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "The first half"}, "finish_reason": None}]}


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.path.endswith("/messages"):
            for event in MESSAGES:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        else:
            self.wfile.write(f"data: {json.dumps(CHAT)}\n\n".encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address, prompt = f"http://127.0.0.1:{server.server_port}", [{"role": "user", "content": "hi"}]
client = anthropic.Anthropic(api_key="none", base_url=address, max_retries=0)
with client.messages.stream(model="m", max_tokens=9, messages=prompt) as stream:
    message = stream.get_final_message()
print("anthropic", message.stop_reason, message.content[0].text)
client = openai.OpenAI(api_key="none", base_url=address, max_retries=0)
with client.chat.completions.stream(model="m", messages=prompt) as stream:
    choice = stream.get_final_completion().choices[0]
print("openai", choice.finish_reason, choice.message.content)
PY
seen=$("$folder/venv/bin/python" "$folder/try.py")
echo "$seen"
[ "$seen" = 'anthropic None The first half
openai None The first half' ]
