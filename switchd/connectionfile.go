package switchd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/switchd/local"
	"golang.org/x/sys/unix"
)

// The connection table lies in a file beside the socket, on tmpfs if that is /run. So a
// switch that was stopped or killed, and is started again before the machine is, goes on
// with the connections that it had.

// ConnectionFile is the file of a connection table. It implements local.Place.
type ConnectionFile struct {
	// Path is the file, which is made.
	Path string
	// Inherited is that file, open, while another process still uses it: connections are
	// there after conntrack.Table.TakeOver. The switch closes it.
	Inherited *os.File

	*arena
}

// Table implements local.Place. The error is for a file that cannot be used.
func (f *ConnectionFile) Table(c conntrack.Config) (table *conntrack.Table, err error) {
	if f.Inherited != nil {
		table, f.arena, err = awaitTable(f.Inherited, c)
	} else {
		table, f.arena, err = restoreTable(f.Path, c)
	}
	return table, err
}

// Lend reports whether another process uses the file by the same lock: then Close does not
// unlock it.
func (f *ConnectionFile) Lend(lent bool) { f.lent = lent }

// arena is a mapped file.
type arena struct {
	file   *os.File
	memory []byte
	// lent says that another process uses the file by the same lock.
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
// of it: a page that could not be had later would kill the switch.
func (a *arena) claim(size int) error {
	fd := int(a.file.Fd())
	if err := ownFile(a.file); err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another process uses it: %w", err)
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

// Close lets another process have the file. The mapping stays until the process
// ends: a request that is still being answered may read it.
func (a *arena) Close() error {
	if a.lent {
		return a.file.Close()
	}
	return errors.Join(unix.Flock(int(a.file.Fd()), unix.LOCK_UN), a.file.Close())
}

// restoreTable is a connection table in the file, with the connections that are
// in it.
func restoreTable(path string, c conntrack.Config) (*conntrack.Table, *arena, error) {
	boot, err := BootID()
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
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), a.Close())
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
	boot, err := BootID()
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

// logRestored says what became of the connections of the process before.
func logRestored(log *slog.Logger, s *local.Switch) {
	r := s.Table().Stats().Restored
	if r.Empty != "" {
		log.Info("no connections restored", "file", conntrackFile, "why", r.Empty)
		return
	}
	log.Info(fmt.Sprintf("%d connections restored, %d torn, in %v", r.Entries, r.Torn, r.Took),
		"file", conntrackFile, "expired", r.Expired, "refused", r.Refused)
}
