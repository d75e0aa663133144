package notes

import (
	"slices"
	"testing"
)

func TestALineThatBeginsWithTheKeywordIsStored(t *testing.T) {
	text := "Hello.\nRemember: the ferry  leaves at 07:45\nI remember nothing\nremember\n"
	if found := In(text, "remember"); !slices.Equal(found, []string{"the ferry leaves at 07:45"}) {
		t.Error(found)
	}
}

func TestANoteIsStoredOnce(t *testing.T) {
	once, changed := Added("", []string{"the ferry is late"})
	if once != "the ferry is late\n" || !changed {
		t.Error(once)
	}
	if _, changed := Added(once, []string{"the ferry is late"}); changed {
		t.Error("it was known")
	}
}

func TestNotesThatShareMostWordsComeFirst(t *testing.T) {
	known := "tea at four\nthe ferry is red\nthe ferry leaves at noon\nthe ferry is old\n"
	found := About(known, "When does the Ferry leave? It leaves soon.")
	if !slices.Equal(found, []string{"the ferry leaves at noon", "the ferry is old", "the ferry is red"}) {
		t.Error(found)
	}
	if len(About(known, "")) != 0 {
		t.Error("nothing is about nothing")
	}
}
