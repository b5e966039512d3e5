//go:build linux && (amd64 || arm64)

package switchd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/antrail/antrail/internal/confine"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// A confined switch is two processes. The launcher is root: it opens the door and what
// else needs privilege, starts the switch with these descriptors, passes signals on and
// waits. It touches no packet and reads no request. The switch has no capability
// (internal/confine); it ends when its launcher does.

// GivenFlag is the flag of `antrail switch` by which the launcher starts the switch. Its
// value is JSON for RunGiven.
const GivenFlag = "given"

// The descriptors of a switch that a launcher has started. Those of the offload follow,
// and then requests to stay awake, one for each worker.
const (
	doorFD = 3 + iota
	lifelineFD
	firstFD
)

// given is what the launcher says to the switch.
type given struct {
	Socket   string   `json:"socket"`
	Settings Settings `json:"settings"`
	Offload  int      `json:"offload,omitempty"` // descriptors
	Awake    int      `json:"awake,omitempty"`   // descriptors
}

// Enter confines the process if a launcher has started it. It is the first call in main.
func Enter() error {
	_, err := confine.Enter()
	return err
}

// RunConfined runs the switch in a process without privilege, as a user above 0, until
// ctx ends. program is this very one; args are its arguments before GivenFlag.
func (p *Process) RunConfined(ctx context.Context, uid int, program string, args ...string) error {
	ln, err := Listen(p.Socket)
	if err != nil {
		return err
	}
	defer os.Remove(p.Socket)
	lifeline, held, err := os.Pipe()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer held.Close()
	g := given{Socket: p.Socket, Settings: p.Settings}
	files, err := p.launchFiles(ln.(*net.UnixListener), lifeline, &g)
	defer closeFiles(files)
	// The switch alone listens: if it ends, nobody waits for an answer.
	if err = errors.Join(err, ln.Close()); err != nil {
		return err
	}
	if err := ownDirectory(p.Dir, uid); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	cmd, err := confine.Command(confine.Options{State: p.Dir, UID: uid, GID: uid}, program, append(args, "--"+GivenFlag, string(text))...)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stderr, os.Stderr, files
	if err := cmd.Start(); err != nil {
		return err
	}
	closeFiles(files)
	p.Log.Info("the switch runs confined", "pid", cmd.Process.Pid, "uid", uid)
	return waitConfined(ctx, cmd)
}

// waitConfined waits for the switch, which gets the signals that this process gets.
func waitConfined(ctx context.Context, cmd *exec.Cmd) error {
	passed := make(chan os.Signal, 8)
	signal.Notify(passed, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(passed)
	ended := make(chan error, 1)
	go runWait(cmd, ended)
	stop := ctx.Done()
	for {
		select {
		case <-stop:
			stop = nil
			cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		case s := <-passed:
			cmd.Process.Signal(s)
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("the confined switch ended: %w", err)
			}
			return nil
		}
	}
}

// runWait waits for a process.
func runWait(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }

// launchFiles are the descriptors of the switch, in their order: the door, the lifeline,
// and what the settings ask for and needs privilege.
func (p *Process) launchFiles(ln *net.UnixListener, lifeline *os.File, g *given) (all []*os.File, err error) {
	all = append(all, lifeline)
	f, err := ln.File()
	if err != nil {
		return all, err
	}
	all = []*os.File{f, lifeline}
	o := p.openOffload()
	for _, fd := range o.Descriptors() {
		c, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return all, errors.Join(err, o.Close())
		}
		all = append(all, os.NewFile(uintptr(c), "offload"))
		g.Offload++
	}
	if err := o.Close(); err != nil { // the switch alone uses it
		return all, err
	}
	if !p.Settings.KeepAwake {
		return all, nil
	}
	g.Awake = p.workers()
	for range g.Awake {
		f, err := ports.OpenAwakeFile()
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
	return all, nil
}

func closeFiles(all []*os.File) {
	for _, f := range all {
		f.Close() // some are closed already
	}
}

// ownDirectory makes a directory for a user. Files of a switch that ran as root before
// become the user's: nobody else could put anything there.
func ownDirectory(dir string, uid int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	at, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, is := at.Sys().(*syscall.Stat_t)
	switch {
	case !is || !at.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	case int(owner.Uid) == uid:
		return nil
	case owner.Uid != 0 || at.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s belongs to user %d, or others may write there: want one of root or of user %d: remove it, or chown it", dir, owner.Uid, uid)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range all {
		if err := os.Lchown(filepath.Join(dir, f.Name()), uid, uid); err != nil {
			return err
		}
	}
	return os.Lchown(dir, uid, uid)
}

// RunGiven runs the switch that a launcher has started, in its state directory, until ctx
// or the launcher ends. text is the value of GivenFlag.
func (p *Process) RunGiven(ctx context.Context, text string) (err error) {
	var g given
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return fmt.Errorf("--%s: %w", GivenFlag, err)
	}
	if g.Awake < 0 || g.Awake > 64 || g.Offload < 0 || g.Offload > 64 {
		return fmt.Errorf("--%s: %d and %d descriptors, want 0 to 64", GivenFlag, g.Offload, g.Awake)
	}
	p.Dir = "." // internal/confine has changed to it
	p.Socket, p.Settings, p.Confined = g.Socket, g.Settings, true
	door := os.NewFile(doorFD, "door")
	if p.Listener, err = net.FileListener(door); err != nil {
		return fmt.Errorf("descriptor %d is no listening socket: a launcher starts the switch with --%s: %w", doorFD, GivenFlag, err)
	}
	door.Close()
	for i := range g.Offload {
		p.offload = append(p.offload, firstFD+i)
	}
	for i := range g.Awake {
		p.awake = append(p.awake, os.NewFile(uintptr(firstFD+g.Offload+i), "awake"))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go p.runLifeline(os.NewFile(lifelineFD, "lifeline"), cancel)
	return p.Run(ctx)
}

// runLifeline ends the switch when the launcher has ended, however that was.
func (p *Process) runLifeline(f *os.File, end func()) {
	io.Copy(io.Discard, f) // nobody writes; it returns when the launcher's end is closed
	p.Log.Info("stopping: the launcher has ended, or stops")
	end()
}
