// Package notes has notes in a text, one per line. `go test ./...` runs it natively.
package notes

import (
	"slices"
	"strings"
	"unicode"
)

// The most letters of a note, and the fewest of a word that is compared.
const (
	longest  = 300
	shortest = 3
)

// In returns the notes in a text: the rest of each line that begins with the keyword.
func In(text, keyword string) (found []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.EqualFold(strings.TrimRight(words[0], ":,.!"), keyword) {
			continue
		}
		note := []rune(strings.Join(words[1:], " "))
		found = append(found, string(note[:min(len(note), longest)]))
	}
	return found
}

// Added returns the notes with new ones behind them, and whether there is a new one.
func Added(notes string, added []string) (string, bool) {
	known := strings.FieldsFunc(notes, func(letter rune) bool { return letter == '\n' })
	before := len(known)
	for _, note := range added {
		if !slices.Contains(known, note) {
			known = append(known, note)
		}
	}
	return strings.Join(known, "\n") + "\n", len(known) > before
}

// About returns the notes that share a word with the question: most shared words first, then newest first.
func About(notes, question string) []string {
	type found struct {
		shared int
		note   string
	}
	wanted := words(question)
	var all []found
	for line := range strings.Lines(notes) {
		shared := 0
		for word := range words(line) {
			if wanted[word] {
				shared++
			}
		}
		if shared > 0 {
			all = append(all, found{shared, strings.TrimSpace(line)})
		}
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(one, other found) int { return other.shared - one.shared })
	best := make([]string, 0, len(all))
	for _, one := range all {
		best = append(best, one.note)
	}
	return best
}

func words(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(letter rune) bool {
		return !unicode.IsLetter(letter) && !unicode.IsDigit(letter)
	}) {
		if len([]rune(word)) >= shortest {
			found[word] = true
		}
	}
	return found
}
