package words

import "testing"

func nearness(one, other string) (sum float64) {
	first, second := Vector(one, 256), Vector(other, 256)
	for at := range first {
		sum += float64(first[at]) * float64(second[at])
	}
	return sum
}

func TestTextsThatShareWordsAreNear(t *testing.T) {
	question := "When does the ferry leave?"
	if nearness(question, question) < 0.999 || nearness("?!", "") < 0.999 {
		t.Error("a text is near to itself")
	}
	if nearness(question, "The ferry leaves at noon.") <= nearness(question, "Tea is at four.") {
		t.Error("common words make texts similar")
	}
	if nearness("ferry", "ferries") <= 0 {
		t.Error("common parts make words similar")
	}
}
