package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Exec runs a command inside a pod, a Node or the outside host. It replaces the calling
// process, so that terminal, signals and exit status are the command's own. It returns only
// on error.
func (l *Lab) Exec(name string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("no command given: expected a program and its arguments")
	}
	ns, err := l.Namespace(name)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return ns.Do(func() error {
		return fmt.Errorf("%s: %w", path, unix.Exec(path, argv, os.Environ()))
	})
}
