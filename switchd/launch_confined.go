//go:build linux && (amd64 || arm64)

package switchd

import (
	"os/exec"

	"github.com/antrail/antrail/internal/confine"
)

// confinedCommand is the command for a program that runs confined, as a user, with a directory to
// write to.
func confinedCommand(dir string, uid int, program string, args []string) (*exec.Cmd, error) {
	return confine.Command(confine.Options{State: dir, UID: uid, GID: uid}, program, args...)
}

// enterConfined confines the process if a launcher wants it.
func enterConfined() error {
	_, err := confine.Enter()
	return err
}

// confineSelf confines a process that was started without privilege.
func confineSelf() error { return confine.Self() }
