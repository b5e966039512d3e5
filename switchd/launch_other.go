//go:build !linux || !(amd64 || arm64)

package switchd

import (
	"errors"
	"os/exec"
)

// confinedCommand is an error on this machine.
func confinedCommand(string, int, string, []string) (*exec.Cmd, error) {
	return nil, errors.New("a confined switch takes Linux on amd64 or arm64")
}

// enterConfined does nothing: no launcher confines a process on this machine.
func enterConfined() error { return nil }

// confineSelf is an error on this machine.
func confineSelf() error { return errors.New("a confined switch takes Linux on amd64 or arm64") }
