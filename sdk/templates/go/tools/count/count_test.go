package count

import "testing"

func TestEachUnitIsCounted(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		count      int
	}{
		{"two lamps\nünlit", "words", 3},
		{"two lamps\nünlit", "lines", 2},
		{"one\n", "lines", 1},
		{"ünlit", "characters", 5},
		{"", "words", 0},
	} {
		if found := Units[c.unit](c.text); found != c.count {
			t.Errorf("%q has %d %s, not %d", c.text, found, c.unit, c.count)
		}
	}
}
