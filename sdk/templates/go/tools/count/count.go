// Package count has the rules of the plugin. `go test ./...` runs them natively.
package count

import (
	"strings"
	"unicode/utf8"
)

// Units are what can be counted.
var Units = map[string]func(string) int{
	"lines":      lines,
	"words":      func(text string) int { return len(strings.Fields(text)) },
	"characters": utf8.RuneCountInString,
}

func lines(text string) int {
	count := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		count++
	}
	return count
}
