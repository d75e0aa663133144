package digest

import (
	"strings"
	"testing"
)

func TestWholeTurnsAreFoldedAndTheNewestStay(t *testing.T) {
	headers := []Header{{1, 1, 10}, {2, 1, 10}, {5, 2, 10}, {6, 3, 10}, {7, 3, 10}}
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
	caller := Message{ID: 7, Who: "assistant", Content: "I read\n\nit.", Calls: []Call{{Name: "read_file"}}}
	long := Message{ID: 8, Who: "user", Content: strings.Repeat("ü", 500)}
	first, second, _ := strings.Cut(Text([]Message{caller, long}, 0), "\n")
	if first != "#7 assistant: I read it. [calls read_file]" {
		t.Error(first)
	}
	if len([]rune(second)) != len("#8 user: ")+Forms[0].Line {
		t.Error(second)
	}
}

func TestALongDigestListsOnlyTheNewestMessages(t *testing.T) {
	messages := make([]Message, 300)
	for at := range messages {
		messages[at] = Message{ID: uint64(at), Who: "user", Content: "x"}
	}
	text := Text(messages, 0)
	if !strings.HasPrefix(text, "(100 earlier messages)\n#100 user: x\n") || !strings.HasSuffix(text, "#299 user: x") {
		t.Error(text)
	}
	if text := Text(messages, len(Forms)-1); text != "(300 earlier messages)\n" {
		t.Error(text)
	}
}

// conversation has turns of a question and a long answer.
func conversation(turns int) ([]Header, Host) {
	var headers []Header
	var messages []Message
	count := func(text string) uint32 { return uint32(len(text) / 4) }
	for at := range 2 * turns {
		message := Message{ID: uint64(at), Who: "user", Content: "What about the ferry?"}
		if at%2 == 1 {
			message.Who, message.Content = "assistant", strings.Repeat("word ", 800)
			message.Calls = []Call{{"a", "read_file", `{"path":"` + strings.Repeat("x", 600) + `"}`}}
		}
		tokens := count(message.Content) + 5
		for _, call := range message.Calls {
			tokens += count(call.Arguments)
		}
		headers = append(headers, Header{uint64(at), uint32(at/2 + 1), tokens})
		messages = append(messages, message)
	}
	return headers, Host{func(first, last uint64) ([]Message, error) { return messages[first : last+1], nil }, count}
}

func TestAViewFitsAlsoWhereTheTurnsDoNot(t *testing.T) {
	headers, host := conversation(10)
	for _, tokens := range []uint64{50000, 5000, 4000, 3000, 2000, 1600, 800, 400, 200} {
		plan, err := Fit(headers, 4, tokens, host)
		if plan == nil || err != nil {
			t.Fatalf("%d tokens: %v", tokens, err)
		}
		used := uint64(host.Count(plan.Text))
		next := uint64(plan.Folded)
		for _, segment := range plan.Rest {
			if segment.First != next {
				t.Errorf("%d is not shown", next)
			}
			next = segment.Last + 1
			if segment.Excerpt {
				used += uint64(host.Count(segment.Content)) + 5
			} else {
				used += Tokens(headers[segment.First : segment.Last+1])
			}
		}
		if used > tokens || next != uint64(len(headers)) {
			t.Errorf("%d tokens: the view has %d", tokens, used)
		}
		if (tokens < 1500) != (plan.Excerpts > 0) {
			t.Errorf("%d tokens: %d excerpts", tokens, plan.Excerpts)
		}
	}
	if plan, _ := Fit(headers, 4, 10, host); plan != nil {
		t.Error("nothing fits into 10 tokens")
	}
	if plan, _ := Fit(headers[:2], 4, 300, host); plan == nil || plan.Folded != 0 || plan.Excerpts != 1 {
		t.Error("a single turn is shortened")
	}
}
