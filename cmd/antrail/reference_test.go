//go:build linux && !portable

package main

import (
	"flag"
	"os"
	"testing"

	"github.com/antrail/antrail/cmd/antrail/reference"
)

var update = flag.Bool("update", false, "write docs/commands.md")

const commandsPage = "docs/commands.md" // from the top, where TestMain goes

const commandsHead = `# Commands

Every command with its flags, from the program's own help. ` + "`antrail COMMAND --help`" + ` prints the same. ` + "`--help`" + ` belongs to each command.
Exit codes: 0 done, 1 failed, 2 wrong usage. A test keeps this page; ` + "`go test ./cmd/antrail -run TestCommandsPage -update`" + ` writes it.
`

// TestCommandsPage compares the page with the command tree.
func TestCommandsPage(t *testing.T) {
	t.Setenv(socketEnv, "") // it changes a default
	began := false
	all := reference.List(rootCommand(&began))
	if len(all) < 30 {
		t.Errorf("%d commands", len(all))
	}
	want := reference.Markdown(commandsHead, all)
	if *update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(commandsPage); err != nil || string(got) != want {
		t.Errorf("%s is not the list of commands (%v); write it with -update", commandsPage, err)
	}
}
