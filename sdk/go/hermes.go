// Package sdk has helpers for Hermes plugins in Go, over the bindings of the contract.
package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/sdk/wit/types"
)

// Error is an error of the contract. Its kind tells the host what to do next.
type Error = contract.Error

// Result is what most functions of the contract return.
type Result[T any] = types.Result[T, Error]

// Done is the result of a function that returns nothing.
func Done() Result[types.Unit] { return types.Ok[types.Unit, Error](types.Unit{}) }

// Ok is a result with a value.
func Ok[T any](value T) Result[T] { return types.Ok[T, Error](value) }

// Fail is a result with an error: `return sdk.Fail[T](sdk.Invalid("text is empty"))`.
func Fail[T any](err Error) Result[T] { return types.Err[T, Error](err) }

// Failure is an error of the contract of this kind, such as contract.MakeErrorKindUnavailable().
func Failure(kind contract.ErrorKind, format string, arguments ...any) Error {
	return Error{Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Invalid says that the caller made a mistake. Of a tool, the model reads the message.
func Invalid(format string, arguments ...any) Error {
	return Failure(contract.MakeErrorKindInvalidInput(), format, arguments...)
}

// Unavailable says that a dependency is unreachable. The host may retry.
func Unavailable(format string, arguments ...any) Error {
	return Failure(contract.MakeErrorKindUnavailable(), format, arguments...)
}

// Decode reads a JSON object into a struct, and refuses unknown keys. An empty text is an empty object.
func Decode(text string, into any) *Error {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	refused := func(err error) *Error {
		invalid := Invalid("cannot be read as a JSON object: %v", err)
		return &invalid
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return refused(fmt.Errorf("it is another JSON value"))
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return refused(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return refused(fmt.Errorf("there is text behind the object"))
	}
	return nil
}

// ToJSON writes a value as JSON.
func ToJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
