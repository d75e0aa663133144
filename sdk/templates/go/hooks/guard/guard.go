// Package guard has the rules of the plugin. `go test ./...` runs them natively.
package guard

import (
	"errors"
	"strings"
)

// Words are the texts that need approval, by default.
var Words = []string{"rm -rf", "DROP TABLE", "git push --force"}

// Check refuses texts that would match every call.
func Check(words []string) error {
	for _, word := range words {
		if word == "" {
			return errors.New("ask_for contains an empty text, which would match every call")
		}
	}
	return nil
}

// Found is the first of the texts that occurs in the arguments; empty if none does.
func Found(words []string, arguments string) string {
	for _, word := range words {
		if strings.Contains(arguments, word) {
			return word
		}
	}
	return ""
}
