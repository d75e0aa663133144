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
    """A header, a parameter, a field or a text in JSON whose value the host inserts. The plugin never sees it. The prefix comes before
    the value; in a header it is `Bearer ` unless another one is given."""

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

    The host encodes `query` and `form`, and sets the content type of a form. A value in `send_json` can be a `Secret`.
    """
    all_headers = dict(headers or {})
    sent = http.Body_Bytes(body) if form is None else http.Body_Form(_fields(form, ""))
    if send_json is not None:
        secrets: list[tuple[str, http.Secret]] = []
        text = well_formed(json.dumps(_without(send_json, secrets), ensure_ascii=False, allow_nan=False))
        if secrets:
            sent = http.Body_Json(record(http.JsonBody, text=text, secrets=secrets))
        else:
            sent = http.Body_Bytes(text.encode())
            all_headers.setdefault("Content-Type", "application/json")
    found = http.send(
        record(
            http.Request,
            method=method,
            url=url,
            query=_fields(query or {}, ""),
            headers=_fields(all_headers, "Bearer "),
            body=sent,
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
    return http.Value_Secret(_secret(value, prefix)) if isinstance(value, Secret) else http.Value_Plain(value)


def _secret(value: Secret, prefix: str) -> http.Secret:
    return record(http.Secret, name=value.name, prefix=prefix if value.prefix is None else value.prefix)


def _without(value: Any, secrets: list[tuple[str, http.Secret]], pointer: str = "") -> Any:
    """The JSON with an empty text in place of each secret. `secrets` gets them, and their places as JSON Pointers."""
    if isinstance(value, Secret):
        secrets.append((pointer, _secret(value, "")))
        return ""
    if isinstance(value, dict):
        escaped = {key: str(key).replace("~", "~0").replace("/", "~1") for key in value}
        return {key: _without(inner, secrets, f"{pointer}/{escaped[key]}") for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without(inner, secrets, f"{pointer}/{at}") for at, inner in enumerate(value)]
    return value
