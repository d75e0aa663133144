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
	// The last proposal, and the one that the host refused last.
	proposed, refused string
	// Tokens by which the host's count exceeded the engine's.
	missed uint64
)

func Configure(text string) sdk.Result[types.Unit] {
	read := settings{KeepTurns: 4, FullAt: 0.75}
	if err := sdk.Decode(text, &read); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	if read.KeepTurns < 1 || read.FullAt <= 0 || read.FullAt > 1 {
		return sdk.Fail[types.Unit](sdk.Invalid("keep_turns must be at least 1, and full_at lie between 0 and 1"))
	}
	config, headers, proposed, refused, missed = read, nil, "", "", 0
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

// ModelChanged has nothing to store: every call brings the window's size.
func ModelChanged(contract.Model) sdk.Result[types.Unit] { return sdk.Done() }

func Observe(added []contract.Header) sdk.Result[types.Unit] {
	for _, header := range added {
		headers = append(headers, digest.Header{ID: header.Id, Turn: header.Turn, Tokens: header.Tokens})
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
	pressure := request.Pressure
	if pressure.Moment.Tag() == engine.Moment_Overflow {
		keep = 1
	}
	// Less than the room, because a count is an estimate.
	room := sdk.Room(pressure.Extra, pressure.ContextLength, pressure.Reserve, pressure.FixedTokens)
	margin := room/32 + sdk.Frame + missed
	var failed *sdk.Error
	host := digest.Host{Count: sdk.CountTokens, Read: func(first, last uint64) ([]digest.Message, error) {
		messages, err := read(contract.MessageRange{First: first, Last: last})
		if err != nil {
			failed = err
			return nil, fmt.Errorf("%s", err.Message)
		}
		return messages, nil
	}}
	plan, _ := digest.Fit(headers, keep, max(room, margin)-margin, host)
	if failed != nil {
		return sdk.Fail[types.Option[engine.Plan]](*failed)
	}
	if plan == nil || plan.Folded+plan.Excerpts == 0 {
		return nothing
	}
	var segments []engine.Segment
	key := ""
	if plan.Folded > 0 {
		covers := contract.MessageRange{First: headers[0].ID, Last: headers[plan.Folded-1].ID}
		// Text and covers under a key must never change. Both depend only on the messages and the form.
		key = fmt.Sprintf("{{name}}:%d-%d/%d", covers.First, covers.Last, plan.Form)
		summary := engine.Summary{Key: key, Content: plan.Text, Covers: []contract.MessageRange{covers}}
		segments = append(segments, engine.MakeSegmentSummary(summary))
	}
	for _, part := range plan.Rest {
		segments = append(segments, segment(part))
	}
	name := fmt.Sprintf("%s %d %d", key, headers[len(headers)-1].ID, plan.Excerpts)
	if name == refused || isShown(request.View, key, plan.Excerpts) {
		return nothing
	}
	proposed = name
	return sdk.Ok(types.Some(engine.Plan{
		Segments: segments,
		Reason:   fmt.Sprintf("folded %d messages, and shortened %d", plan.Folded, plan.Excerpts),
	}))
}

func segment(part digest.Segment) engine.Segment {
	if !part.Excerpt {
		return engine.MakeSegmentRestore(contract.MessageRange{First: part.First, Last: part.Last})
	}
	excerpt := engine.Excerpt{Id: part.First, KeepImages: true}
	if part.Content != "" {
		excerpt.Content = types.Some(part.Content)
	}
	for _, call := range part.Calls {
		excerpt.Arguments = append(excerpt.Arguments, types.Tuple2[string, string]{F0: call, F1: "{}"})
	}
	return engine.MakeSegmentExcerpt(excerpt)
}

// isShown tells whether the view has this summary already, and as many shortened messages.
func isShown(view []engine.Item, key string, excerpts int) bool {
	shown := key == ""
	for _, item := range view {
		switch item.Tag() {
		case engine.Item_Summary:
			shown = shown || item.Summary().Key == key
		case engine.Item_Excerpt:
			excerpts--
		}
	}
	return shown && excerpts <= 0
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
			var calls []digest.Call
			for _, call := range message.ToolCalls {
				calls = append(calls, digest.Call{ID: call.Id, Name: call.Name, Arguments: call.Arguments})
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
		if needed, room, known := sdk.Refusal(outcome.Refused()); known && needed > room {
			missed += needed - room
		}
	}
	return sdk.Done()
}

func Status() string {
	return sdk.ToJSON(map[string]any{"messages": len(headers), "keep_turns": config.KeepTurns})
}
