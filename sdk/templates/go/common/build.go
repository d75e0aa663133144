//go:build ignore

// Builds the component: `go run build.go`. Writes the bindings again after a change of wit/: `go run build.go bindings`.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

const name = "{{name}}"

// A plugin of several kinds lists a world for each: wit/1.1.0/worlds.wit.
var contract = []string{"--wit", "wit/1.1.0", "--world", "{{kind}}-plugin"}

func main() {
	hermes := os.Getenv("HERMES")
	if hermes == "" {
		hermes = "hermes"
	}
	if len(os.Args) > 1 && os.Args[1] == "bindings" {
		run(nil, hermes, append([]string{"plugins", "bindings", "go", "bindings"}, contract...)...)
		return
	}
	advise()
	core, component := "build/"+name+".core", "build/"+name+".wasm"
	target := []string{"GOOS=wasip1", "GOARCH=wasm"}
	run(target, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", core, ".")
	run(nil, hermes, append([]string{"plugins", "component", core, "--output", component}, contract...)...)
}

// What a plugin does not have, though it compiles, and what there is instead.
var instead = map[string]string{
	"net":      "a plugin has no sockets: use sdk.NewRequest, with the permission `http`",
	"net/http": "a plugin has no sockets: use sdk.NewRequest, with the permission `http`",
	"os":       "a plugin has no files and no variables: use sdk.Document, a setting of plugin.yaml, or Request.Secret",
	"os/exec":  "a plugin has no programs: use the package of hermes:process/process, with the permission `process`",
}

func advise() {
	list := exec.Command("go", "list", "-f", "{{$at := .ImportPath}}{{range .Imports}}{{$at}} {{.}}\n{{end}}", "./...")
	found, _ := list.Output()
	for _, line := range strings.Split(string(found), "\n") {
		at, imported, _ := strings.Cut(line, " ")
		if why := instead[imported]; why != "" {
			fmt.Fprintf(os.Stderr, "warning: %s imports %s, and %s\n", at, imported, why)
		}
	}
}

// How the compiler names a function that the bindings call and plugin/ lacks.
var undefined = regexp.MustCompile(`(?m)^bindings\W.*: undefined: export_`)

func run(environment []string, program string, arguments ...string) {
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	var said bytes.Buffer
	if program == "go" {
		command.Stderr = io.MultiWriter(os.Stderr, &said)
	}
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s: %v\n", program, err)
		if undefined.Match(said.Bytes()) {
			fmt.Fprintln(os.Stderr, "help: what is undefined in bindings/ is a function of the contract, which plugin/ has to define")
		}
		os.Exit(1)
	}
}
