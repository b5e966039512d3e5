package switchd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// A switch that another process launches. The launcher is an agent, or `antrail switch
// --confined`. It is root: it opens the door and what else needs privilege, and starts the
// switch with these descriptors. It touches no packet and reads no request. A confined
// switch has no capability (internal/confine).
//
// Its descriptors, above the standard ones:
//
//	3  what the launcher says, as JSON (launched), in a pipe
//	4  the door, listening
//	5  a pipe that ends with the launcher, if the switch is bound to it
//	…  programs and maps of the offload; a request to stay awake for each worker

// Launch says how a switch is launched.
type Launch struct {
	// Program calls Enter before anything else in main; "" for the running one.
	Program string
	// UID is the user and group of a confined switch, above 0. With 0 the switch keeps the
	// privilege of its launcher.
	UID int
	// Bound has the switch end when its launcher does. Otherwise it goes on.
	Bound bool
	// Level is the least that the switch logs, on the launcher's standard error.
	Level slog.Level
}

// ConfinedUID is the user of a confined switch when nobody gives another. No distribution
// gives this number to anybody.
const ConfinedUID = 64081

// launchedVariable is in the environment of a switch that is launched.
const launchedVariable = "ANTRAIL_LAUNCHED"

const (
	wordsFD = 3 + iota
	doorFD
	firstFD
)

// launched is what the launcher says to the switch.
type launched struct {
	Socket   string     `json:"socket"`
	Dir      string     `json:"dir"`
	Release  string     `json:"release"`
	Level    slog.Level `json:"level"`
	Settings Settings   `json:"settings"`
	Confined bool       `json:"confined,omitempty"`
	Bound    bool       `json:"bound,omitempty"`
	Offload  int        `json:"offload,omitempty"` // descriptors
	Awake    int        `json:"awake,omitempty"`   // descriptors
}

// Start starts the switch in a process of its own, which is a session of its own. The
// caller waits for it (exec.Cmd.Wait), and removes the socket when it has ended. The error
// is ErrRunning if somebody answers at the socket already.
func (p *Process) Start(l Launch) (*exec.Cmd, error) {
	ln, err := Listen(p.Socket)
	if err != nil {
		return nil, err
	}
	said := launched{
		Socket: p.Socket, Dir: p.Dir, Release: p.Release, Level: l.Level, Settings: p.Settings, Confined: l.UID > 0, Bound: l.Bound,
	}
	files, err := p.launchFiles(ln.(*net.UnixListener), &said)
	defer closeFiles(files)
	// The switch alone listens: if it ends, nobody waits for an answer.
	if err = errors.Join(err, ln.Close()); err != nil {
		return nil, err
	}
	cmd, err := p.command(&l)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(said)
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
	_, err = say.Write(text)
	return cmd, errors.Join(err, say.Close())
}

// command is the program that is to be the switch.
func (p *Process) command(l *Launch) (*exec.Cmd, error) {
	program, args := cmp.Or(l.Program, Program()), []string{"switch"}
	if l.UID == 0 {
		return exec.Command(program, args...), nil
	}
	if err := ownDirectory(p.Dir, l.UID); err != nil {
		return nil, fmt.Errorf("the switch's directory: %w", err)
	}
	return confinedCommand(p.Dir, l.UID, program, args)
}

// Go stops goroutines for a garbage collection, three or four times each, by a flag that
// their next call of a function sees, and by a signal for those that make none for long.
// A worker calls functions all the time. The signal is an interrupt of another processor,
// which takes 50 to 130 µs in a virtual machine, and the worker waits for it
// (docs/decisions/053-short-stops.md). Go reads the setting that leaves it out when a
// program begins, and from the environment only.
const noSignals = "asyncpreemptoff"

// withNoSignals adds the setting to those of GODEBUG, unless it is there.
func withNoSignals(setting string) string {
	if strings.Contains(setting, noSignals+"=") {
		return setting
	}
	return strings.TrimPrefix(setting+","+noSignals+"=1", ",")
}

// Program is a path that the running program is executed by: the one where it lies, for
// ps(1) and pgrep(1) name a process after it, unless something else lies there by now.
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

// RunConfined runs the switch in a process without privilege, as a user above 0, until
// ctx ends. The switch ends when this process does.
func (p *Process) RunConfined(ctx context.Context, uid int, level slog.Level) error {
	cmd, err := p.Start(Launch{UID: uid, Bound: true, Level: level})
	if err != nil {
		return err
	}
	defer os.Remove(p.Socket)
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

// launchFiles are the descriptors of the switch behind the first, in their order.
func (p *Process) launchFiles(ln *net.UnixListener, said *launched) (all []*os.File, err error) {
	f, err := ln.File()
	if err != nil {
		return nil, err
	}
	all = append(all, f)
	if said.Bound {
		lifeline, held, err := os.Pipe()
		if err != nil {
			return all, err
		}
		p.held = held // closed when this process ends, and not before
		all = append(all, lifeline)
	}
	if !said.Confined { // it opens the others itself
		return all, nil
	}
	o := p.openOffload()
	for _, fd := range o.Descriptors() {
		c, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return all, errors.Join(err, o.Close())
		}
		all = append(all, os.NewFile(uintptr(c), "offload"))
		said.Offload++
	}
	if err := o.Close(); err != nil { // the switch alone uses it
		return all, err
	}
	if !p.Settings.KeepAwake {
		return all, nil
	}
	said.Awake = p.workers()
	for range said.Awake {
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

// Enter makes this process the switch that a launcher has started, and ends with it. If
// nobody has, Enter returns. It is the first call in main: it may begin again as another
// user.
func Enter() {
	err := enterConfined()
	if err == nil {
		if os.Getenv(launchedVariable) == "" {
			return
		}
		os.Unsetenv(launchedVariable)
		err = runLaunched()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "antrail switch:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runLaunched runs the switch until SIGTERM, or until its launcher ends if it is bound to
// it. The launcher's standard error may end before: that is no reason to end.
func runLaunched() error {
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	words := os.NewFile(wordsFD, "words")
	var said launched
	err := json.NewDecoder(words).Decode(&said)
	if err = errors.Join(err, words.Close()); err != nil {
		return fmt.Errorf("descriptor %d: what the launcher says: %w", wordsFD, err)
	}
	p := &Process{
		Socket: said.Socket, Dir: said.Dir, Release: said.Release, Settings: said.Settings, Confined: said.Confined,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: said.Level})).With("process", "switch"),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.takeFiles(&said, cancel); err != nil {
		return err
	}
	return p.Run(ctx)
}

// takeFiles takes the descriptors that the launcher gives. end ends the switch.
func (p *Process) takeFiles(said *launched, end func()) (err error) {
	if said.Awake < 0 || said.Awake > 64 || said.Offload < 0 || said.Offload > 64 {
		return fmt.Errorf("%d and %d descriptors, want 0 to 64", said.Offload, said.Awake)
	}
	door := os.NewFile(doorFD, "door")
	if p.Listener, err = net.FileListener(door); err != nil {
		return fmt.Errorf("descriptor %d is no listening socket: %w", doorFD, err)
	}
	door.Close()
	next := firstFD
	if said.Bound {
		go p.runLifeline(os.NewFile(uintptr(next), "lifeline"), end)
		next++
	}
	for range said.Offload {
		p.offload = append(p.offload, next)
		next++
	}
	for range said.Awake {
		p.awake = append(p.awake, os.NewFile(uintptr(next), "awake"))
		next++
	}
	return nil
}

// runLifeline ends the switch when the launcher has ended, however that was.
func (p *Process) runLifeline(f *os.File, end func()) {
	io.Copy(io.Discard, f) // nobody writes; it returns when the launcher's end is closed
	p.Log.Info("stopping: the launcher has ended, or stops")
	end()
}
