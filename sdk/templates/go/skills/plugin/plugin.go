// Package plugin has skills embedded in the plugin: the files in `src/skills/` are part of the component.
//
// The model sees the index in its prompt. It opens a skill when needed, and files that the skill mentions. To add a skill, add a folder
// with a SKILL.md.
package plugin

import (
	lifecycle "hermes/bindings/imports/hermes_lifecycle_lifecycle"
	skills "hermes/bindings/imports/hermes_skills_skills"
	contract "hermes/bindings/imports/hermes_types_types"
	"hermes/sdk"
	"hermes/sdk/wit/types"
	"hermes/shelf"
	"hermes/src"
)

const category = "household"

func Configure(config string) sdk.Result[types.Unit] {
	if err := sdk.Decode(config, &map[string]any{}); err != nil {
		return sdk.Fail[types.Unit](*err)
	}
	return sdk.Done()
}

func SessionStart(contract.Session, lifecycle.Start) sdk.Result[types.Unit] { return sdk.Done() }

func SessionEnd(lifecycle.Ending) sdk.Result[types.Unit] { return sdk.Done() }

func Index() sdk.Result[[]skills.Skill] {
	found, err := shelf.Open(src.Files)
	if err != nil {
		return sdk.Fail[[]skills.Skill](sdk.Failure(contract.MakeErrorKindFailed(), "%v", err))
	}
	var index []skills.Skill
	for _, skill := range found.Skills {
		index = append(index, skills.Skill{Name: skill.Name, Description: skill.Description, Category: category})
	}
	return sdk.Ok(index)
}

// View returns a skill, or one of its files. The model sees the message of an error.
func View(name string, path types.Option[string]) sdk.Result[skills.Document] {
	found, err := shelf.Open(src.Files)
	if err != nil {
		return sdk.Fail[skills.Document](sdk.Failure(contract.MakeErrorKindFailed(), "%v", err))
	}
	text, skill, err := found.View(name, path.SomeOr(shelf.Main))
	if err != nil {
		return sdk.Fail[skills.Document](sdk.Invalid("%v", err))
	}
	return sdk.Ok(skills.Document{Content: text, Files: skill.Files})
}
