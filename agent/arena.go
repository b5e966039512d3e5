package agent

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack"
	"golang.org/x/sys/unix"
)

// The connection table lies in a file beside the socket, on tmpfs where that is
// /run. So an agent that was stopped or killed, and is started again before the
// machine is, goes on with the connections it had.

// arenaFile is where the connections are kept.
func (c *Config) arenaFile() string { return c.besideSocket("ct.arena") }

// besideSocket is the path of a file of the agent's own: beside agent.sock under
// its plain name; beside another socket, as several agents of one machine have
// them, under that one's name too.
func (c *Config) besideSocket(file string) string {
	dir, name := filepath.Split(c.Socket)
	if name != filepath.Base(DefaultSocket) {
		file = strings.TrimSuffix(name, ".sock") + "." + file
	}
	return filepath.Join(dir, file)
}

// arena is a mapped file.
type arena struct {
	file   *os.File
	memory []byte
	// lent says that another agent uses the file by the same lock.
	lent bool
}

// openArena maps a file of a size, which it makes, allocates and locks. It is
// an error when the file is no plain file of our own, or another agent's.
func openArena(path string, size int) (*arena, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	a := &arena{file: f}
	if err := a.claim(size); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	a.memory, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: mmap: %w", path, err), f.Close())
	}
	return a, nil
}

// claim makes the file ours alone, of the right size and with memory behind all
// of it: a page that could not be had later would kill the agent.
func (a *arena) claim(size int) error {
	fd := int(a.file.Fd())
	if err := ownFile(a.file); err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another agent uses it: %w", err)
	}
	if err := a.file.Chmod(0o600); err != nil {
		return err
	}
	if err := a.file.Truncate(int64(size)); err != nil {
		return err
	}
	if err := unix.Fallocate(fd, 0, 0, int64(size)); err != nil {
		return fmt.Errorf("allocating %d bytes: %w", size, err)
	}
	return nil
}

// close lets another agent have the file. The mapping stays until the process
// ends: a request that is still being answered may read it.
func (a *arena) close() error {
	if a.lent {
		return a.file.Close()
	}
	return errors.Join(unix.Flock(int(a.file.Fd()), unix.LOCK_UN), a.file.Close())
}

// bootID is the kernel's name for the time since the machine was started.
func bootID() (id [16]byte, err error) {
	const path = "/proc/sys/kernel/random/boot_id"
	text, err := os.ReadFile(path)
	if err != nil {
		return id, err
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%s: %q is no boot id", path, text)
	}
	copy(id[:], b)
	return id, nil
}

// bootClock is CLOCK_BOOTTIME, by which connections end: the same for a process
// and the one after it. It is read once and carried on by the process's own
// monotonic clock, which costs no system call.
func bootClock() (func() int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("CLOCK_BOOTTIME: %w", err)
	}
	start, base := time.Now(), ts.Nano()
	return func() int64 { return base + int64(time.Since(start)) }, nil
}

// restoreTable is a connection table in the file, with the connections that are
// in it.
func restoreTable(path string, c conntrack.Config) (*conntrack.Table, *arena, error) {
	boot, err := bootID()
	if err != nil {
		return nil, nil, err
	}
	a, err := openArena(path, conntrack.ArenaSize(c.Max))
	if err != nil {
		return nil, nil, err
	}
	c.Capacity = c.Max
	table, err := conntrack.Restore(c, a.memory, boot)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), a.close())
	}
	return table, a, nil
}

// awaitTable is a connection table in the file of an agent that still runs, mapped
// and empty until TakeOver. The file is the arena's, also after an error.
func awaitTable(f *os.File, c conntrack.Config) (*conntrack.Table, *arena, error) {
	table, a, err := mapTable(f, c)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("conntrack: %w", err), f.Close())
	}
	return table, a, nil
}

func mapTable(f *os.File, c conntrack.Config) (*conntrack.Table, *arena, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := conntrack.ArenaSize(c.Max)
	if st.Size() != int64(size) {
		return nil, nil, fmt.Errorf("conntrack.max is %d here, and the agent that runs has a file of %d bytes and not %d", c.Max, st.Size(), size)
	}
	boot, err := bootID()
	if err != nil {
		return nil, nil, err
	}
	// All pages are mapped now: later each would cost a fault, while no packet moves.
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap: %w", err)
	}
	c.Capacity = c.Max
	table, err := conntrack.Await(c, memory, boot)
	return table, &arena{file: f, memory: memory, lent: true}, err
}

// logRestored says what became of the connections of the agent before.
func logRestored(log *slog.Logger, path string, r conntrack.Restored) {
	if r.Empty != "" {
		log.Info("no connections restored", "file", path, "why", r.Empty)
		return
	}
	log.Info(fmt.Sprintf("%d connections restored, %d torn, in %v", r.Entries, r.Torn, r.Took),
		"file", path, "expired", r.Expired, "refused", r.Refused)
}
