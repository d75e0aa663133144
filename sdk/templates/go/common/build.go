//go:build ignore

// Builds the component: `go run build.go`. Writes the bindings again after a change of wit/: `go run build.go bindings`.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

const name = "{{name}}"

// A plugin of several kinds lists a world for each: wit/1.0.0/worlds.wit.
var contract = []string{"--wit", "wit/1.0.0", "--world", "{{kind}}-plugin"}

func main() {
	hermes := os.Getenv("HERMES")
	if hermes == "" {
		hermes = "hermes"
	}
	if len(os.Args) > 1 && os.Args[1] == "bindings" {
		run(nil, hermes, append([]string{"plugins", "bindings", "go", "bindings"}, contract...)...)
		return
	}
	core, component := "build/"+name+".core", "build/"+name+".wasm"
	target := []string{"GOOS=wasip1", "GOARCH=wasm"}
	run(target, "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", core, ".")
	run(nil, hermes, append([]string{"plugins", "component", core, "--output", component}, contract...)...)
}

func run(environment []string, program string, arguments ...string) {
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %s: %v\n", program, err)
		os.Exit(1)
	}
}
