package shelf

import (
	"strings"
	"testing"
	"testing/fstest"

	"hermes/src"
)

func TestEverySkillAndItsFilesCanBeRead(t *testing.T) {
	shelf, err := Open(src.Files)
	if err != nil || len(shelf.Skills) == 0 {
		t.Fatal(err)
	}
	for _, skill := range shelf.Skills {
		for _, file := range append(skill.Files, Main) {
			if text, _, err := shelf.View(skill.Name, file); text == "" || err != nil {
				t.Errorf("%s/%s: %v", skill.Name, file, err)
			}
		}
	}
}

func TestAnErrorListsWhatExists(t *testing.T) {
	shelf, _ := Open(src.Files)
	if _, _, err := shelf.View("coffee", Main); err == nil || !strings.Contains(err.Error(), "tea") {
		t.Error(err)
	}
	if _, _, err := shelf.View("tea", "../src.go"); err == nil || !strings.Contains(err.Error(), "temperatures") {
		t.Error(err)
	}
}

func TestASkillWithoutADescriptionIsRefused(t *testing.T) {
	for _, text := range []string{"", "# Tea", "---\nname: tea\n---\ndescription: not here"} {
		files := fstest.MapFS{"skills/tea/SKILL.md": {Data: []byte(text)}}
		if _, err := Open(files); err == nil {
			t.Errorf("%q is no skill", text)
		}
	}
}
