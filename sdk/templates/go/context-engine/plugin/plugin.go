// Package plugin is a context engine that keeps the last turns in full and folds older messages into one line each.
//
// The host owns the conversation. The engine receives the header of each message and answers `Propose` with a plan: a new view over
// message ids. The host checks the plan, so a bug here costs a refused plan and never a message.
package plugin

import (
	"fmt"

	engine "hermes/bindings/imports/hermes_context_engine_context_engine"
	history "hermes/bindings/imports/hermes_history_history"
	lifecycle "hermes/bindings/imports/hermes_lifecycle_lifecycle"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/digest"
	"hermes/sdk"
	"hermes/sdk/wit/types"
)

// The configuration. Keys and defaults must match plugin.yaml.
type settings struct {
	KeepTurns uint32  `json:"keep_turns"`
	FullAt    float64 `json:"full_at"`
}

// What the instance knows. The host can create a new instance at any time, and sends it all headers again.
var (
	config  = settings{KeepTurns: 4, FullAt: 0.75}
	headers []digest.Header
	// The key of the last proposal, and the key that the host refused last.
	proposed, refused string
)

func Configure(text string) sdk.Result[types.Unit] {
	read := settings{KeepTurns: 4, FullAt: 0.75}
	if err := sdk.Decode(text, &read); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	if read.KeepTurns < 1 || read.FullAt <= 0 || read.FullAt > 1 {
		return sdk.Fail[types.Unit](sdk.Invalid("keep_turns must be at least 1, and full_at lie between 0 and 1"))
	}
	config, headers, proposed, refused = read, nil, "", ""
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

// ModelChanged has nothing to store: every call brings the window's size.
func ModelChanged(contract.Model) sdk.Result[types.Unit] { return sdk.Done() }

func Observe(added []contract.Header) sdk.Result[types.Unit] {
	for _, header := range added {
		headers = append(headers, digest.Header{ID: header.Id, Turn: header.Turn})
	}
	return sdk.Done()
}

func Rewound(first uint64) sdk.Result[types.Unit] {
	for len(headers) > 0 && headers[len(headers)-1].ID >= first {
		headers = headers[:len(headers)-1]
	}
	return sdk.Done()
}

func Assess(pressure engine.Pressure) engine.Advice {
	room := max(int64(pressure.ContextLength)-int64(pressure.Reserve), 1)
	full := float64(pressure.PromptTokens) / float64(room)
	moment := pressure.Moment.Tag()
	switch {
	case moment == engine.Moment_Manual || moment == engine.Moment_Overflow || full >= 0.95:
		return engine.Advice{Propose: engine.Timing_Now}
	case full >= config.FullAt:
		// The host weighs the gain against the cache, and adopts the plan when it pays.
		return engine.Advice{Propose: engine.Timing_Boundary}
	default:
		return engine.Advice{Propose: engine.Timing_NotNow}
	}
}

func Prepare(engine.Request) sdk.Result[contract.Progress] { return sdk.Ok(contract.Progress_Done) }

func Propose(request engine.Request) sdk.Result[types.Option[engine.Plan]] {
	nothing := sdk.Ok(types.None[engine.Plan]())
	keep := config.KeepTurns
	if request.Pressure.Moment.Tag() == engine.Moment_Overflow {
		keep = 1
	}
	count := digest.Folded(headers, keep)
	if count == 0 {
		return nothing
	}
	covers := contract.MessageRange{First: headers[0].ID, Last: headers[count-1].ID}
	// Text and covers under a key must never change. Both depend only on the messages.
	key := fmt.Sprintf("{{name}}:%d-%d", covers.First, covers.Last)
	for _, item := range request.View {
		if item.Tag() == engine.Item_Summary && item.Summary().Key == key {
			return nothing
		}
	}
	if key == refused {
		return nothing
	}
	messages, err := read(covers)
	if err != nil {
		return sdk.Fail[types.Option[engine.Plan]](*err)
	}
	summary := engine.Summary{Key: key, Content: digest.Text(messages), Covers: []contract.MessageRange{covers}}
	rest := contract.MessageRange{First: headers[count].ID, Last: headers[len(headers)-1].ID}
	proposed = key
	return sdk.Ok(types.Some(engine.Plan{
		Segments: []engine.Segment{engine.MakeSegmentSummary(summary), engine.MakeSegmentRestore(rest)},
		Reason:   fmt.Sprintf("folded %d messages into one line each", count),
	}))
}

// read returns the messages of a range, whose pages have at most 4 MiB each.
func read(covers contract.MessageRange) ([]digest.Message, *sdk.Error) {
	var messages []digest.Message
	for {
		page := history.Read(covers)
		if page.IsErr() {
			err := page.Err()
			return nil, &err
		}
		for _, message := range page.Ok().Messages {
			who := message.ToolName.SomeOr(roles[message.Role.Tag()])
			var calls []string
			for _, call := range message.ToolCalls {
				calls = append(calls, call.Name)
			}
			messages = append(messages, digest.Message{ID: message.Id, Who: who, Content: message.Content, Calls: calls})
		}
		if !page.Ok().Next.IsSome() {
			return messages, nil
		}
		covers.First = page.Ok().Next.Some()
	}
}

var roles = map[uint8]string{
	contract.Role_System:    "system",
	contract.Role_User:      "user",
	contract.Role_Assistant: "assistant",
	contract.Role_Tool:      "tool",
	contract.Role_Other:     "other",
}

func Settled(outcome engine.Outcome) sdk.Result[types.Unit] {
	if outcome.Tag() == engine.Outcome_Refused {
		// The host would refuse the same plan again.
		refused, proposed = proposed, ""
	}
	return sdk.Done()
}

func Status() string {
	return sdk.ToJSON(map[string]any{"messages": len(headers), "keep_turns": config.KeepTurns})
}
