package switchd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/switchd/local"
	"golang.org/x/sys/unix"
)

// A switch that another process launches. The launcher is an agent, or `antrail switch
// --confined`. It is root: it opens the door and everything that needs privilege, and starts the
// switch with these descriptors. It touches no packet and reads no request. A confined switch has
// no capability (internal/confine).
//
// Its descriptors, above the standard ones:
//
//	3  the launcher's message as JSON (launched), in a pipe
//	4  the door, listening
//	5  a pipe that ends with the launcher, if the switch is bound to it
//	…  a connection to the switch that this one is to replace; or programs and maps of the
//	   offload
//	…  for each worker a request to keep its processor awake
//
// If a switch replaces another, its socket has a temporary name until it moves packets. Then the
// launcher renames the socket to the door's path.

// Launch has the options for launching a switch.
type Launch struct {
	// Program is the program to run; it must call Enter first in main. "" is the running one.
	Program string
	// UID is the user and group of a confined switch, above 0. With 0 the switch keeps the
	// privilege of its launcher.
	UID int
	// Bound ends the switch when its launcher ends. Otherwise it continues.
	Bound bool
	// Level is the lowest level that the switch logs, on the launcher's standard error.
	Level slog.Level
	// Into has the waiting process that becomes the switch, which must be confined; nil for a child.
	Into *Waiting
}

// ConfinedUID is the default user of a confined switch. No distribution assigns this number.
const ConfinedUID = 64081

// launchedVariable is in the environment of a launched switch.
const launchedVariable = "ANTRAIL_LAUNCHED"

const (
	wordsFD = 3 + iota
	doorFD
)

// launchOrder is the launcher's message to the switch.
type launchOrder struct {
	Socket   string         `json:"socket"`
	Dir      string         `json:"dir"`
	Release  string         `json:"release"`
	Level    slog.Level     `json:"level"`
	Settings local.Settings `json:"settings"`
	Confined bool           `json:"confined,omitempty"`
	Bound    bool           `json:"bound,omitempty"`
	Replaces bool           `json:"replaces,omitempty"`
	Offload  int            `json:"offload,omitempty"` // descriptors
	Awake    int            `json:"awake,omitempty"`   // descriptors
}

// Launched is a switch that was launched.
type Launched struct {
	// Ended receives an error when the process has ended: "exit status 0" if it ended normally.
	Ended   <-chan error
	process *os.Process // nil if it is not a child
}

// Start starts the switch in its own process and session. After it has ended, the caller removes
// the socket. The error is ErrRunning if a switch already answers at the socket and TakeOver is
// not set. With TakeOver, the new switch replaces the one that answers, without a gap, and Start
// returns after that. If it fails, the other one continues, or has ended as if it had been
// killed.
func (p *Process) Start(ctx context.Context, l Launch) (*Launched, error) {
	start := p.startChild
	if l.Into != nil {
		waits, err := l.Into.takeWaiting(ctx)
		if err != nil {
			return nil, err
		}
		defer waits.hangUp()
		start = p.startWaiting(waits)
	}
	before, err := p.dialBefore()
	if err != nil {
		return nil, err
	}
	if before == nil {
		ln, err := Listen(p.Socket)
		if err != nil {
			return nil, err
		}
		return p.startAt(&l, ln, nil, start)
	}
	defer before.Close()
	next := p.Socket + ".next"
	ln, err := Listen(next)
	if err != nil {
		return nil, err
	}
	defer os.Remove(next)
	sw, err := p.startAt(&l, ln, before, start)
	if err != nil {
		return nil, err
	}
	if err := sw.awaitAnswer(ctx, next); err != nil {
		return nil, fmt.Errorf("the switch that should replace another: %w", err)
	}
	return sw, os.Rename(next, p.Socket)
}

// dialBefore connects to the switch that is to be replaced; nil if there is none.
func (p *Process) dialBefore() (*net.UnixConn, error) {
	if !p.TakeOver {
		return nil, nil
	}
	return dialSwitch(p.Socket)
}

// awaitAnswer waits until the switch answers at a socket. If ctx or prepareTime ends before, it
// kills the switch.
func (l *Launched) awaitAnswer(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	sw := door.Dial(socket)
	for {
		_, err := sw.Info(ctx)
		if err == nil {
			return nil
		}
		select {
		case how := <-l.Ended:
			return fmt.Errorf("it has ended (%w); the log has its reason", how)
		case <-ctx.Done():
			if l.process != nil {
				l.process.Kill()
			}
			return errors.Join(ctx.Err(), err)
		case <-time.After(answerPause):
		}
	}
}

// answerPause is the pause between two checks whether a switch answers.
const answerPause = 2 * time.Millisecond

// starter makes a process the switch, with the launcher's message and descriptors.
type starter func(l *Launch, order *launchOrder, files []*os.File) (*Launched, error)

// startAt starts the switch with its door. before is a connection to its predecessor, or nil.
func (p *Process) startAt(l *Launch, ln net.Listener, before *net.UnixConn, start starter) (*Launched, error) {
	order := &launchOrder{
		Socket: p.Socket, Dir: p.Dir, Release: p.Release, Level: l.Level, Settings: p.Settings, Confined: l.UID > 0, Bound: l.Bound,
		Replaces: before != nil,
	}
	files, err := p.launchFiles(ln.(*net.UnixListener), before, order)
	defer closeFiles(files)
	// Only the switch may hold the listening socket: if it ends, callers get an error at once.
	if err = errors.Join(err, ln.Close()); err != nil {
		return nil, err
	}
	if order.Confined {
		if err := ownDirectory(p.Dir, l.UID); err != nil {
			return nil, fmt.Errorf("the switch's directory: %w", err)
		}
	}
	return start(l, order, files)
}

// startChild starts the switch as a child.
func (p *Process) startChild(l *Launch, order *launchOrder, files []*os.File) (*Launched, error) {
	cmd, err := p.command(l)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	words, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer words.Close()
	cmd.Env = append(cmd.Environ(), launchedVariable+"=1", "GODEBUG="+withNoSignals(os.Getenv("GODEBUG")))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stderr, os.Stderr, append([]*os.File{words}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, say.Close())
	}
	p.Log.Info("the switch is launched", "pid", cmd.Process.Pid, "uid", l.UID, "confined", l.UID > 0, "door", p.Socket)
	ended := make(chan error, 1)
	go p.runWait(cmd, ended)
	_, err = say.Write(text)
	return &Launched{ended, cmd.Process}, errors.Join(err, say.Close())
}

// errEnded is how a process ends without an error.
var errEnded = errors.New("exit status 0")

// replacedStatus is the exit status of a launched switch after another has replaced it. The
// socket then belongs to the other.
const replacedStatus = 10

// runWait waits for the process of a switch, and sends how it ended.
func (p *Process) runWait(cmd *exec.Cmd, ended chan<- error) {
	err := cmd.Wait()
	switch cmd.ProcessState.ExitCode() {
	case 0:
		err = errEnded
	case replacedStatus:
		err = errHandedOver
	}
	p.Log.Info("the process of the switch has ended", "how", err)
	ended <- err
}

// command is the program that becomes the switch.
func (p *Process) command(l *Launch) (*exec.Cmd, error) {
	program, args := cmp.Or(l.Program, Program()), []string{"switch"}
	if l.UID == 0 {
		return exec.Command(program, args...), nil
	}
	return confinedCommand(p.Dir, l.UID, program, args)
}

// Go stops goroutines for a garbage collection, three or four times each. It sets a flag that
// their next function call sees, and signals those that make no call for long. A worker calls
// functions all the time. The signal is an interrupt of another processor. It takes 50 to 130 µs
// in a virtual machine, and the worker waits for it
// (docs/decisions/011-workers-turns-and-sleep.md). Go reads the setting against it only at the
// start of a program, and only from the environment.
const noSignals = "asyncpreemptoff"

// withNoSignals adds the setting to those of GODEBUG, unless it is already there.
func withNoSignals(setting string) string {
	if strings.Contains(setting, noSignals+"=") {
		return setting
	}
	return strings.TrimPrefix(setting+","+noSignals+"=1", ",")
}

// Program is a path for executing the running program again. It is the program's own path,
// because ps(1) and pgrep(1) show that, unless another file is there now.
func Program() string {
	const running = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return running
	}
	there, err := os.Stat(path)
	if err != nil {
		return running
	}
	if now, err := os.Stat(running); err != nil || !os.SameFile(there, now) {
		return running
	}
	return path
}

// RunConfined runs the switch in a process without privilege, as a user above 0, until ctx ends.
// The switch ends when this process does.
func (p *Process) RunConfined(ctx context.Context, uid int, level slog.Level) error {
	sw, err := p.Start(ctx, Launch{UID: uid, Bound: true, Level: level})
	if err != nil {
		return err
	}
	return p.superviseUntil(ctx, sw)
}

// superviseUntil passes this process's signals on to the switch, and returns when the switch has
// ended. It ends the switch when ctx ends.
func (p *Process) superviseUntil(ctx context.Context, sw *Launched) error {
	passed := make(chan os.Signal, 8)
	signal.Notify(passed, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(passed)
	stop := ctx.Done()
	for {
		select {
		case <-stop:
			stop = nil
			sw.process.Signal(syscall.SIGTERM) // it may have ended
		case s := <-passed:
			sw.process.Signal(s)
		case err := <-sw.Ended:
			if errors.Is(err, errHandedOver) {
				return nil
			}
			os.Remove(p.Socket)
			if !errors.Is(err, errEnded) {
				return fmt.Errorf("the confined switch ended: %w", err)
			}
			return nil
		}
	}
}

// launchFiles are the descriptors of the switch behind the first, in their order.
func (p *Process) launchFiles(ln *net.UnixListener, before *net.UnixConn, order *launchOrder) (all []*os.File, err error) {
	f, err := ln.File()
	if err != nil {
		return nil, err
	}
	all = append(all, f)
	if order.Bound {
		lifeline, held, err := os.Pipe()
		if err != nil {
			return all, err
		}
		p.lifeline = held // closed only when this process ends
		all = append(all, lifeline)
	}
	if before != nil {
		f, err := before.File()
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
	if !order.Confined { // the switch opens the others itself
		return all, nil
	}
	o := &Offload{}
	if before == nil { // otherwise the switch gets the predecessor's
		o = p.openOffload()
	}
	for _, fd := range o.Descriptors() {
		c, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return all, errors.Join(err, o.Close())
		}
		all = append(all, os.NewFile(uintptr(c), "offload"))
		order.Offload++
	}
	if err := o.Close(); err != nil { // only the switch uses it
		return all, err
	}
	if p.Settings.KeepAwake {
		order.Awake = p.workers()
	}
	for range order.Awake {
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

// ownDirectory makes a directory for a user. Files of a switch that ran as root become the
// user's. That is safe, because only root could put files there.
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
		return fmt.Errorf("%s is not a directory", dir)
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
