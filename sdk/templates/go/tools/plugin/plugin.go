// Package plugin is a tool that counts lines, words or characters of a text.
package plugin

import (
	"fmt"

	lifecycle "hermes/bindings/imports/hermes_lifecycle_lifecycle"
	tools "hermes/bindings/imports/hermes_tools_tools"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/count"
	"hermes/sdk"
	"hermes/sdk/wit/types"
)

func Configure(config string) sdk.Result[types.Unit] {
	if err := sdk.Decode(config, &map[string]any{}); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

const parameters = `{
  "type": "object",
  "properties": {
    "text": {"type": "string", "description": "The text."},
    "unit": {"type": "string", "enum": ["lines", "words", "characters"], "description": "What to count; words by default."}
  },
  "required": ["text"],
  "additionalProperties": false
}`

// Catalog lists the tools. This one has no side effects, so it may run in parallel with others.
func Catalog() sdk.Result[[]tools.Tool] {
	return sdk.Ok([]tools.Tool{{
		Schema: contract.ToolSchema{
			Name:        "count",
			Description: "Counts the lines, words or characters of a text. Use it instead of counting yourself.",
			Parameters:  parameters,
		},
		Toolset:    "text",
		Parallel:   true,
		Effect:     tools.Effect_Reads,
		Idempotent: true,
	}})
}

// Call runs a tool. The model sees the message of an error, so it suggests a fix.
func Call(invocation tools.Invocation) sdk.Result[tools.Output] {
	if invocation.Name != "count" {
		return sdk.Fail[tools.Output](sdk.Invalid("there is no tool %.80q; there is count", invocation.Name))
	}
	var given struct {
		Text *string `json:"text"`
		Unit *string `json:"unit"`
	}
	if err := sdk.Decode(invocation.Arguments, &given); err != nil {
		return sdk.Fail[tools.Output](*err)
	}
	if given.Text == nil || *given.Text == "" {
		return sdk.Fail[tools.Output](sdk.Invalid("text is empty: give the text itself, not a file's name"))
	}
	unit := "words"
	if given.Unit != nil {
		unit = *given.Unit
	}
	rule, known := count.Units[unit]
	if !known {
		return sdk.Fail[tools.Output](sdk.Invalid("unit must be one of lines, words, characters, not %.80q", unit))
	}
	answer := fmt.Sprintf("%d %s", rule(*given.Text), unit)
	return sdk.Ok(tools.Output{Content: []tools.Content{tools.MakeContentText(answer)}})
}
