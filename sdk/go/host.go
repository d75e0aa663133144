package sdk

import (
	"encoding/json"
	"fmt"
	"strconv"

	log "hermes/bindings/imports/hermes_host_log"
	http "hermes/bindings/imports/hermes_http_http"
	llm "hermes/bindings/imports/hermes_llm_llm"
	documents "hermes/bindings/imports/hermes_storage_documents"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/sdk/wit/types"
)

// Log writes a line to the plugin's log: `sdk.Log("a tool failed", "tool", name)`. The user does not see it.
func Log(event string, pairs ...any) { write(log.Level_Info, event, pairs) }

// Warn writes a line to the plugin's log. The user sees each warning once.
func Warn(event string, pairs ...any) { write(log.Level_Warn, event, pairs) }

func write(level log.Level, event string, pairs []any) {
	line := map[string]any{"event": event}
	for at := 0; at+1 < len(pairs); at += 2 {
		line[fmt.Sprint(pairs[at])] = pairs[at+1]
	}
	log.Write(level, ToJSON(line))
}

// CountTokens is the host's own estimate; it needs no permission.
func CountTokens(text string) uint32 { return llm.CountTokens(text) }

// Document is the text of a document of the plugin, empty if there is none. Instances share documents, and documents last.
func Document(name string) (string, *Error) {
	found := documents.Read(name)
	if found.IsErr() {
		err := found.Err()
		return "", &err
	}
	return found.Ok().SomeOr(documents.Document{}).Content, nil
}

// UpdateDocument writes the new text of a document, from the old one; `false` says that there is no change. The function can run again, if
// another writer was faster.
func UpdateDocument(name string, change func(old string) (string, bool)) *Error {
	for range 16 {
		found := documents.Read(name)
		if found.IsErr() {
			err := found.Err()
			return &err
		}
		version := types.None[string]()
		old := found.Ok().SomeOr(documents.Document{})
		if found.Ok().IsSome() {
			version = types.Some(old.Version)
		}
		text, changed := change(old.Content)
		if !changed {
			return nil
		}
		outcome := documents.Write(name, text, version)
		if outcome.IsErr() {
			err := outcome.Err()
			return &err
		}
		if outcome.Ok().Tag() == documents.WriteOutcome_Written {
			return nil
		}
	}
	// Another writer that is faster each time is not another writer.
	err := Failure(contract.MakeErrorKindConflict(), "the document changes too often")
	return &err
}

// Request is a request over HTTP to an address that plugin.yaml asks for. There is no `net/http`: a plugin has no sockets.
//
//	answer, err := sdk.NewRequest("GET", "https://api.example.org/v1/items").Secret("Authorization", "api_key", "Bearer ").Send()
//	if err == nil {
//		err = answer.Checked()
//	}
type Request struct{ request http.Request }

// NewRequest is a request without headers and body.
func NewRequest(method, url string) *Request {
	return &Request{http.Request{Method: method, Url: url, Body: http.MakeBodyBytes(nil)}}
}

// Header adds a header.
func (r *Request) Header(name, value string) *Request {
	r.request.Headers = append(r.request.Headers, http.Field{Name: name, Value: http.MakeValuePlain(value)})
	return r
}

// Query adds a parameter to the address.
func (r *Request) Query(name, value string) *Request {
	r.request.Query = append(r.request.Query, http.Field{Name: name, Value: http.MakeValuePlain(value)})
	return r
}

// Secret adds a header with a secret of plugin.yaml, which the host inserts behind the prefix. The plugin never sees it.
func (r *Request) Secret(header, name, prefix string) *Request {
	value := http.MakeValueSecret(http.Secret{Name: name, Prefix: prefix})
	r.request.Headers = append(r.request.Headers, http.Field{Name: header, Value: value})
	return r
}

// JSON makes a value the body.
func (r *Request) JSON(value any) *Request {
	r.request.Body = http.MakeBodyBytes([]byte(ToJSON(value)))
	return r.Header("Content-Type", "application/json")
}

// TimeoutMs limits the time of the whole request.
func (r *Request) TimeoutMs(milliseconds uint32) *Request {
	r.request.TimeoutMs = types.Some(milliseconds)
	return r
}

// Send sends the request. A response of any status is a response.
func (r *Request) Send() (*Response, *Error) {
	answer := http.Send(r.request)
	if answer.IsErr() {
		err := answer.Err()
		return nil, &err
	}
	return &Response{answer.Ok()}, nil
}

// Response is what a service answered.
type Response struct{ http.Response }

// Header is the first header with this name, in lower case; empty without one.
func (r *Response) Header(name string) string {
	for _, header := range r.Headers {
		if header.F0 == name {
			return header.F1
		}
	}
	return ""
}

// JSON reads the body. A body that cannot be read is the failure of the service.
func (r *Response) JSON(into any) *Error {
	if err := json.Unmarshal(r.Body, into); err != nil {
		failed := Failure(contract.MakeErrorKindFailed(), "the answer of %s (status %d) is not the expected JSON: %v", r.Url, r.Status, err)
		return &failed
	}
	return nil
}

// Checked is nil if the status is 200 to 299. Else it is an error: `unavailable` for 401 and 403, with the code `auth`, and for 408, 425, 429
// and 5xx; `failed` for the rest. The user can put a key right, so a memory's turn waits for it.
func (r *Response) Checked() *Error {
	if r.Status >= 200 && r.Status < 300 {
		return nil
	}
	err := Failure(contract.MakeErrorKindFailed(), "%s answered %d", r.Url, r.Status)
	err.Code = fmt.Sprintf("status-%d", r.Status)
	switch {
	case r.Status == 401 || r.Status == 403:
		err.Kind, err.Code = contract.MakeErrorKindUnavailable(), "auth"
		err.Message += ": it does not accept the key"
	case r.Status == 408 || r.Status == 425 || r.Status == 429 || r.Status >= 500:
		err.Kind = contract.MakeErrorKindUnavailable()
	}
	if seconds, failed := strconv.ParseUint(r.Header("retry-after"), 10, 32); failed == nil {
		err.RetryAfterMs = types.Some(uint32(min(seconds, 3600)) * 1000)
	}
	return &err
}

// Extra is the value of a key of a field `Extra`.
func Extra(extra []types.Tuple2[string, string], key string) (string, bool) {
	for _, pair := range extra {
		if pair.F0 == key {
			return pair.F1, true
		}
	}
	return "", false
}

func number(extra []types.Tuple2[string, string], key string) (uint64, bool) {
	text, _ := Extra(extra, key)
	read, err := strconv.ParseUint(text, 10, 63)
	return read, err == nil
}

// Frame is about what the host adds to a summary, in tokens.
const Frame = 110

// Room is the most tokens that the next view of a context engine may have, as the host counts them: the tokens of the kept messages, and of each
// summary with its Frame. Give the fields of `Pressure`.
func Room(extra []types.Tuple2[string, string], contextLength, reserve, fixedTokens uint32) uint64 {
	if room, known := number(extra, "room"); known {
		return room
	}
	return max(uint64(contextLength), uint64(reserve)+uint64(fixedTokens)) - uint64(reserve) - uint64(fixedTokens)
}

// Refusal is the tokens of a plan that the host refused as too large, and those that fit. It is false for another refusal, and of an older host.
func Refusal(refused Error) (needed, room uint64, known bool) {
	needed, first := number(refused.Extra, "needed")
	room, second := number(refused.Extra, "room")
	return needed, room, first && second
}
