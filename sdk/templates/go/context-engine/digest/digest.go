// Package digest decides which messages to fold, so that the rest fits, and writes their digest. `go test ./...` runs it natively.
package digest

import (
	"fmt"
	"strings"
)

// Forms of a digest, until one fits: the most characters of a line, and the most lines. Older messages are only counted.
var Forms = []struct{ Line, Lines int }{{80, 200}, {80, 50}, {40, 15}, {0, 0}}

// Excerpts are the most characters that stay of each message of the newest turn, except for the user's, if not even that turn fits.
var Excerpts = []int{1 << 30, 4000, 1000, 250, 40}

// Header is what the engine needs to know about a message.
type Header struct {
	ID     uint64
	Turn   uint32
	Tokens uint32
}

// Message is what a digest says about a message.
type Message struct {
	ID      uint64
	Who     string
	Content string
	Calls   []Call
}

// Call is a call of a tool.
type Call struct{ ID, Name, Arguments string }

// Segment is what a view shows behind the digest: messages in full, or one that is shortened.
type Segment struct {
	First, Last uint64
	Excerpt     bool
	// The shorter text; empty if the text stays. And the calls whose arguments are left out.
	Content string
	Calls   []string
}

// Plan is a view: a digest of the first messages, and the rest.
type Plan struct {
	Folded   int
	Form     int
	Text     string
	Rest     []Segment
	Excerpts int
}

// Host is what the rules need from outside: messages by their positions, and the host's count of tokens.
type Host struct {
	Read  func(first, last uint64) ([]Message, error)
	Count func(text string) uint32
}

// Folded is the number of messages to fold, so that the newest turns stay. It folds whole turns, which keeps calls with their results.
func Folded(headers []Header, keepTurns uint32) int {
	for at, header := range headers {
		if uint64(header.Turn)+uint64(keepTurns) > uint64(headers[len(headers)-1].Turn) {
			return at
		}
	}
	return len(headers)
}

// Tokens is what messages take.
func Tokens(headers []Header) (tokens uint64) {
	for _, header := range headers {
		tokens += uint64(header.Tokens)
	}
	return tokens
}

// Fit makes the view that fits into so many tokens: fewer turns, then a shorter newest turn, then a shorter digest. It is nil if there is none.
func Fit(headers []Header, keepTurns uint32, tokens uint64, host Host) (*Plan, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	// The rest is for the digest.
	most := tokens / 4 * 3
	keep := keepTurns
	for keep > 1 && Tokens(headers[Folded(headers, keep):]) > most {
		keep--
	}
	plan := &Plan{Folded: Folded(headers, keep)}
	kept := headers[plan.Folded:]
	first, last := kept[0].ID, kept[len(kept)-1].ID
	plan.Rest = []Segment{{First: first, Last: last}}
	used := Tokens(kept)
	for at := 1; at < len(Excerpts) && used > most; at++ {
		messages, err := host.Read(first, last)
		if err != nil {
			return nil, err
		}
		var saved uint64
		plan.Rest, plan.Excerpts, saved = shorten(messages, Excerpts[at], host.Count)
		used = max(Tokens(kept), saved) - saved
	}
	if plan.Folded == 0 {
		if used > tokens {
			return nil, nil
		}
		return plan, nil
	}
	messages, err := host.Read(headers[0].ID, headers[plan.Folded-1].ID)
	if err != nil {
		return nil, err
	}
	for plan.Form = range Forms {
		plan.Text = Text(messages, plan.Form)
		if used+uint64(host.Count(plan.Text)) <= tokens {
			return plan, nil
		}
	}
	return nil, nil
}

// shorten makes segments of messages, and says how many tokens that saves.
func shorten(messages []Message, characters int, count func(string) uint32) (rest []Segment, excerpts int, saved uint64) {
	for _, message := range messages {
		segment := Segment{First: message.ID, Last: message.ID}
		var own uint64
		if short := cut(message.Content, characters); len(short) < len(message.Content) {
			short += " [shortened]"
			if before, after := count(message.Content), count(short); after < before {
				segment.Content = short
				own += uint64(before - after)
			}
		}
		for _, call := range message.Calls {
			if len(call.Arguments) > characters {
				segment.Calls = append(segment.Calls, call.ID)
				own += uint64(count(call.Arguments) - min(count("{}"), count(call.Arguments)))
			}
		}
		// The host shows what the user said last as it was said.
		if message.Who != "user" && own > 0 {
			segment.Excerpt = true
			excerpts++
			saved += own
		} else if end := len(rest) - 1; end >= 0 && !rest[end].Excerpt {
			rest[end].Last = message.ID
			continue
		} else {
			segment = Segment{First: message.ID, Last: message.ID}
		}
		rest = append(rest, segment)
	}
	return rest, excerpts, saved
}

func cut(text string, characters int) string {
	for at := range text {
		if characters == 0 {
			return text[:at]
		}
		characters--
	}
	return text
}

// Text is a digest with one line per message.
func Text(messages []Message, form int) string {
	var out strings.Builder
	if leftOut := len(messages) - Forms[form].Lines; leftOut > 0 {
		fmt.Fprintf(&out, "(%d earlier messages)\n", leftOut)
		messages = messages[leftOut:]
	}
	for at, message := range messages {
		if at > 0 {
			out.WriteByte('\n')
		}
		words := strings.Join(strings.Fields(message.Content), " ")
		fmt.Fprintf(&out, "#%d %s: %s", message.ID, message.Who, cut(words, Forms[form].Line))
		for _, call := range message.Calls {
			fmt.Fprintf(&out, " [calls %s]", call.Name)
		}
	}
	return out.String()
}
