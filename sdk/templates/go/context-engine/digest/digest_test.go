package digest

import (
	"strings"
	"testing"
)

func TestWholeTurnsAreFoldedAndTheNewestStay(t *testing.T) {
	headers := []Header{{1, 1}, {2, 1}, {5, 2}, {6, 3}, {7, 3}}
	for keep, expected := range map[uint32]int{1: 3, 2: 2, 3: 0} {
		if found := Folded(headers, keep); found != expected {
			t.Errorf("keeping %d turns folds %d messages, not %d", keep, found, expected)
		}
	}
	if Folded(nil, 1) != 0 {
		t.Error("nothing is folded of nothing")
	}
}

func TestAMessageBecomesALineWithItsCalls(t *testing.T) {
	caller := Message{ID: 7, Who: "assistant", Content: "I read\n\nit.", Calls: []string{"read_file"}}
	long := Message{ID: 8, Who: "user", Content: strings.Repeat("ü", 500)}
	first, second, _ := strings.Cut(Text([]Message{caller, long}), "\n")
	if first != "#7 assistant: I read it. [calls read_file]" {
		t.Error(first)
	}
	if len([]rune(second)) != len("#8 user: ")+Line {
		t.Error(second)
	}
}

func TestALongDigestListsOnlyTheNewestMessages(t *testing.T) {
	messages := make([]Message, 300)
	for at := range messages {
		messages[at] = Message{ID: uint64(at), Who: "user", Content: "x"}
	}
	text := Text(messages)
	if !strings.HasPrefix(text, "(100 earlier messages)\n#100 user: x\n") || !strings.HasSuffix(text, "#299 user: x") {
		t.Error(text)
	}
}
