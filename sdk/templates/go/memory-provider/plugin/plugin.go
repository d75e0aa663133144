// Package plugin is a memory provider that stores lines of the user beginning with `remember`, and recalls those that share a word with a later
// question.
//
// The notes are stored in the plugin's own document `notes.md`, which needs no permission. An instance can be dropped at any time, so it
// keeps no notes in memory.
package plugin

import (
	"strings"

	lifecycle "hermes/bindings/imports/hermes_lifecycle_lifecycle"
	memory "hermes/bindings/imports/hermes_memory_memory_provider"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/notes"
	"hermes/sdk"
	"hermes/sdk/wit/types"
)

const document = "notes.md"

var keyword = "remember"

// Configure reads the configuration. Keys and defaults must match plugin.yaml.
func Configure(config string) sdk.Result[types.Unit] {
	given := struct {
		Keyword string `json:"keyword"`
	}{"remember"}
	if err := sdk.Decode(config, &given); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	if strings.TrimSpace(given.Keyword) == "" {
		return sdk.Fail[types.Unit](sdk.Invalid("keyword is empty: give a word such as `remember`"))
	}
	keyword = given.Keyword
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

func SystemPrompt() sdk.Result[string] { return sdk.Ok("") }

func Recall(query memory.Query) sdk.Result[[]memory.Recollection] {
	known, err := sdk.Document(document)
	if err != nil {
		return sdk.Fail[[]memory.Recollection](*err)
	}
	left := query.Budget
	var found []memory.Recollection
	for _, note := range notes.About(known, query.Text) {
		if tokens := sdk.CountTokens(note); tokens <= left {
			left -= tokens
			found = append(found, memory.Recollection{Key: note, Text: note})
		}
	}
	return sdk.Ok(found)
}

// SyncTurn stores the notes of a turn. A turn can arrive twice, but each note is stored once. An error keeps the turn in the host's queue, if it
// can help to try again.
func SyncTurn(turn memory.Turn) sdk.Result[types.Unit] {
	if added := notes.In(turn.User, keyword); len(added) > 0 {
		err := sdk.UpdateDocument(document, func(old string) (string, bool) { return notes.Added(old, added) })
		if err != nil {
			return sdk.Fail[types.Unit](*err)
		}
	}
	return sdk.Done()
}
