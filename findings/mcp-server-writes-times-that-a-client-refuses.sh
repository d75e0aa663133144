#!/usr/bin/env bash
# mcp 2.3.0 (PyPI), server and client; @modelcontextprotocol/client 2.4.0 (npm, Node 22.23.3): the official SDKs of the Model Context Protocol.
#
# The SDK for Python makes a tool's output schema of its type, and gives `datetime`, `time` and `timedelta` the formats `date-time`, `time` and
# `duration`. RFC 3339, which these formats refer to, wants an offset from UTC in the first two and knows no fractions of a second in the third.
# The server writes `2026-01-02T03:04:05` and `PT1.5S` all the same. Its own client takes them; the client for TypeScript fails with
# "Structured content does not match the tool's output schema", after the tool has done its work. Tests in Python alone do not show it.
# A server should return times with an offset, and durations as a number; a client should not take this error for a call that never ran.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0
npm install --silent --no-audit --no-fund node@22.23.3 @modelcontextprotocol/client@2.4.0
cat > server.py <<'PY'
import datetime, pathlib

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("times")


class Moment(BaseModel):
    at: datetime.datetime


class Hour(BaseModel):
    at: datetime.time


class Length(BaseModel):
    took: datetime.timedelta


@server.tool()
def moment() -> Moment:
    with pathlib.Path("runs").open("a") as runs:
        runs.write("moment ran\n")
    return Moment(at=datetime.datetime(2026, 1, 2, 3, 4, 5))


@server.tool()
def moment_utc() -> Moment:
    return Moment(at=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc))


@server.tool()
def hour() -> Hour:
    return Hour(at=datetime.time(3, 4))


@server.tool()
def length() -> Length:
    return Length(took=datetime.timedelta(seconds=1.5))


server.run()
PY
cat > client.py <<'PY'
import asyncio, json

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    async with stdio_client(StdioServerParameters(command="venv/bin/python", args=["server.py"])) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for tool in (await session.list_tools()).tools:
            result = await session.call_tool(tool.name, {})
            print(tool.name, json.dumps(result.structured_content))


asyncio.run(main())
PY
cat > client.mjs <<'JS'
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const client = new Client({ name: "try", version: "1" });
await client.connect(new StdioClientTransport({ command: "venv/bin/python", args: ["server.py"], stderr: "ignore" }));
for (const { name } of (await client.listTools()).tools) {
  const said = await client.callTool({ name, arguments: {} }).then((result) => JSON.stringify(result.structuredContent), (error) => error.message);
  console.log(name, said);
}
await client.close();
JS
seen=$(echo Python; venv/bin/python client.py 2> errors; rm runs; echo TypeScript; node_modules/.bin/node client.mjs; cat runs)
echo "$seen"
[ "$seen" = 'Python
moment {"at": "2026-01-02T03:04:05"}
moment_utc {"at": "2026-01-02T03:04:05Z"}
hour {"at": "03:04:00"}
length {"took": "PT1.5S"}
TypeScript
moment Structured content does not match the tool'"'"'s output schema: data/at must match format "date-time"
moment_utc {"at":"2026-01-02T03:04:05Z"}
hour Structured content does not match the tool'"'"'s output schema: data/at must match format "time"
length Structured content does not match the tool'"'"'s output schema: data/took must match format "duration"
moment ran' ]
