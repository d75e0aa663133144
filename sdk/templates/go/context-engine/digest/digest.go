// Package digest decides which messages to fold, and writes their digest. `go test ./...` runs it natively.
package digest

import (
	"fmt"
	"strings"
)

// The most characters of each message, and the most lines of a digest. Older messages are only counted.
const (
	Line  = 80
	Lines = 200
)

// Header is what the engine needs to know about a message.
type Header struct {
	ID   uint64
	Turn uint32
}

// Message is what a digest says about a message.
type Message struct {
	ID      uint64
	Who     string
	Content string
	Calls   []string
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

// Text is a digest with one line per message.
func Text(messages []Message) string {
	var out strings.Builder
	if leftOut := len(messages) - Lines; leftOut > 0 {
		fmt.Fprintf(&out, "(%d earlier messages)\n", leftOut)
		messages = messages[leftOut:]
	}
	for at, message := range messages {
		if at > 0 {
			out.WriteByte('\n')
		}
		words := []rune(strings.Join(strings.Fields(message.Content), " "))
		fmt.Fprintf(&out, "#%d %s: %s", message.ID, message.Who, string(words[:min(len(words), Line)]))
		if len(message.Calls) > 0 {
			fmt.Fprintf(&out, " [calls %s]", strings.Join(message.Calls, ", "))
		}
	}
	return out.String()
}
