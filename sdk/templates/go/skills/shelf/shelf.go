// Package shelf finds skills in a file system. `go test ./...` runs it natively.
package shelf

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Main is the file that describes a skill.
const Main = "SKILL.md"

// Skill is a folder with a file Main.
type Skill struct {
	Name, Description string
	// Its other files, relative to its folder.
	Files []string
	// Its folder.
	folder string
}

// Shelf has the skills of a file system, in order of their folders.
type Shelf struct {
	files  fs.FS
	Skills []Skill
}

// Open reads the skills below the folder `skills`.
func Open(files fs.FS) (*Shelf, error) {
	folders, err := fs.Glob(files, "skills/*/"+Main)
	shelf := &Shelf{files: files}
	for _, file := range folders {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		folder := path.Dir(file)
		skill := Skill{field(string(text), "name"), field(string(text), "description"), nil, folder}
		if skill.Name == "" || skill.Description == "" {
			return nil, fmt.Errorf("%s has no name or no description between the lines `---`", file)
		}
		err = fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && name != file {
				skill.Files = append(skill.Files, strings.TrimPrefix(name, folder+"/"))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		shelf.Skills = append(shelf.Skills, skill)
	}
	return shelf, err
}

// View is the text of a skill, or of one of its files. An error lists what exists.
func (s *Shelf) View(name, file string) (string, Skill, error) {
	var names []string
	for _, skill := range s.Skills {
		names = append(names, skill.Name)
		if skill.Name != name {
			continue
		}
		if file != Main && !contains(skill.Files, file) {
			return "", skill, fmt.Errorf("the skill has no file %.80q; it has %s", file, strings.Join(append(skill.Files, Main), ", "))
		}
		text, err := fs.ReadFile(s.files, path.Join(skill.folder, file))
		return string(text), skill, err
	}
	return "", Skill{}, fmt.Errorf("there is no skill %.80q; there is %s", name, strings.Join(names, ", "))
}

func contains(all []string, wanted string) bool {
	for _, one := range all {
		if one == wanted {
			return true
		}
	}
	return false
}

// field is the value of a line `name: value` between the lines `---` at the beginning, without quotes.
func field(text, name string) string {
	lines := strings.Split(text, "\n")
	for _, line := range lines[min(1, len(lines)):] {
		if strings.TrimSpace(line) == "---" {
			break
		}
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
