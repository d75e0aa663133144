// Package plugin has hooks that ask for approval before a tool call with words that delete, and log failed calls.
//
// Hooks observe the agent loop and can stop a tool call, but never change the prompt. The host waits only for `before-tool`.
package plugin

import (
	"fmt"

	hooks "hermes/bindings/imports/hermes_hooks_hooks"
	lifecycle "hermes/bindings/imports/hermes_lifecycle_lifecycle"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/guard"
	"hermes/sdk"
	"hermes/sdk/wit/types"
)

var (
	words  = guard.Words
	failed int
)

// Configure reads the configuration. Keys and defaults must match plugin.yaml.
func Configure(config string) sdk.Result[types.Unit] {
	given := struct {
		AskFor []string `json:"ask_for"`
	}{guard.Words}
	if err := sdk.Decode(config, &given); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	if err := guard.Check(given.AskFor); err != nil {
		return sdk.Fail[types.Unit](sdk.Invalid("%v", err))
	}
	words = given.AskFor
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

func Interests() []string { return []string{"before-tool", "after-tool"} }

func OnEvent(event hooks.Event) hooks.Verdict {
	switch event.Tag() {
	case hooks.Event_BeforeTool:
		call := event.BeforeTool()
		if found := guard.Found(words, call.Arguments); found != "" {
			return hooks.MakeVerdictAsk(fmt.Sprintf("`%s` is called with `%s`", call.Name, found))
		}
	case hooks.Event_AfterTool:
		if done := event.AfterTool(); done.Failed {
			failed++
			sdk.Log("a tool failed", "tool", done.Event.Name, "failed_so_far", failed)
		}
	}
	return hooks.MakeVerdictProceed()
}
