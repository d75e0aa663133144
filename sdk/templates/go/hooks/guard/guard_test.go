package guard

import "testing"

func TestWordsThatDeleteNeedApproval(t *testing.T) {
	for arguments, expected := range map[string]string{
		`{"command":"rm -rf /tmp/x"}`: "rm -rf",
		`{"command":"ls"}`:            "",
		"":                            "",
	} {
		if found := Found(Words, arguments); found != expected {
			t.Errorf("%s: %q", arguments, found)
		}
	}
}

func TestAnEmptyTextIsRefused(t *testing.T) {
	if Check(Words) != nil || Check([]string{"mv", ""}) == nil {
		t.Error("only an empty text is refused")
	}
}
