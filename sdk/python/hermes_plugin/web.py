"""HTTP requests to addresses that the user granted. They need the permissions `http` and, for a secret, `secrets`.

`http.client` and packages on top of it do not work: components have no sockets.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from wit_world.imports import http

from .border import well_formed
from .errors import failed, unavailable
from .records import record

__all__ = ["Response", "Secret", "replace_secret", "request"]


@dataclass
class Secret:
    """A header, a parameter or a field whose value the host inserts. The plugin never sees it. The prefix comes before the value; in
    a header it is `Bearer ` unless another one is given."""

    name: str
    prefix: str | None = None


@dataclass
class Response:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The body as JSON; an error of the kind `failed` if it cannot be read."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise failed(f"the answer (status {self.status}) cannot be read as JSON") from None

    def checked(self) -> "Response":
        """This response if its status is 2xx; else an error of the contract: `unavailable` for 401 and 403, with the code `auth`, and
        for 408, 425, 429 and 5xx; `failed` for the rest. The user can put a key right, so a memory's turn waits for it."""
        if 200 <= self.status < 300:
            return self
        seconds = self.headers.get("retry-after", "")
        wait = min(int(seconds), 3_600) * 1_000 if seconds.isascii() and seconds.isdigit() else None
        if self.status in (401, 403):
            raise unavailable(f"the service answered {self.status}: it does not accept the key", wait, code="auth")
        code = f"status-{self.status}"
        if self.status in (408, 425, 429) or self.status >= 500:
            raise unavailable(f"the service answered {self.status}", wait, code=code)
        raise failed(f"the service answered {self.status}", code=code)


def request(
    method: str,
    url: str,
    *,
    query: dict[str, str | Secret] | None = None,
    headers: dict[str, str | Secret] | None = None,
    body: bytes = b"",
    send_json: Any = None,
    form: dict[str, str | Secret] | None = None,
    timeout_ms: int | None = None,
) -> Response:
    """Sends a request. A response of any status is returned; `checked` turns a bad one into an error.

    The host encodes `query` and `form`, and sets the content type of a form.
    """
    all_headers = dict(headers or {})
    if send_json is not None:
        body = well_formed(json.dumps(send_json, ensure_ascii=False, allow_nan=False)).encode()
        all_headers.setdefault("Content-Type", "application/json")
    found = http.send(
        record(
            http.Request,
            method=method,
            url=url,
            query=_fields(query or {}, ""),
            headers=_fields(all_headers, "Bearer "),
            body=http.Body_Bytes(body) if form is None else http.Body_Form(_fields(form, "")),
            timeout_ms=timeout_ms,
        )
    )
    return Response(found.status, found.body, dict(found.headers))


def replace_secret(name: str, value: str) -> None:
    """Replaces the value of a secret that the manifest declares as `writable`, such as a token that a server has renewed."""
    http.replace_secret(name, value)


def _fields(values: dict[str, str | Secret], prefix: str) -> list[http.Field]:
    return [record(http.Field, name=name, value=_value(value, prefix)) for name, value in values.items()]


def _value(value: str | Secret, prefix: str) -> http.Value:
    if isinstance(value, Secret):
        prefix = prefix if value.prefix is None else value.prefix
        return http.Value_Secret(record(http.Secret, name=value.name, prefix=prefix))
    return http.Value_Plain(value)
