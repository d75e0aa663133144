// Package src contains the files of the skills, as they are when the component is built.
package src

import "embed"

//go:embed skills
var Files embed.FS
