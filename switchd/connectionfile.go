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

// The connection table is in a file of the switch's directory, which is on tmpfs if it is below
// /run. So a switch that is started again before the machine reboots has the connections of its
// predecessor.

// ConnectionFile is the file of a connection table. It implements local.Place.
type ConnectionFile struct {
	// Path is the file. It is created if it does not exist.
	Path string
	// Inherited is that file, open, while another process still uses it. Connections appear after
	// conntrack.Table.TakeOver. The switch closes it.
	Inherited *os.File

	*arena
}

// Table implements local.Place. It returns an error for an unusable file.
func (f *ConnectionFile) Table(c conntrack.Config) (table *conntrack.Table, err error) {
	if f.Inherited != nil {
		table, f.arena, err = awaitTable(f.Inherited, c)
	} else {
		table, f.arena, err = restoreTable(f.Path, c)
	}
	return table, err
}

// Lend records whether another process uses the file by the same lock. If so, Close does not
// unlock it.
func (f *ConnectionFile) Lend(lent bool) { f.lent = lent }

// arena is a mapped file.
type arena struct {
	file   *os.File
	memory []byte
	// lent is set if another process uses the file by the same lock.
	lent bool
}

// openArena maps a file of a size. It creates, allocates and locks the file. It refuses a file
// that is not a plain file of this user, or that another process uses.
func openArena(path string, size int) (*arena, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	a := &arena{file: f}
	if err := a.lockAndAllocate(size); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	a.memory, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: mmap: %w", path, err), f.Close())
	}
	return a, nil
}

// lockAndAllocate locks the file and gives it its size, with memory behind every page. Otherwise a
// page that cannot be allocated later would kill the switch.
func (a *arena) lockAndAllocate(size int) error {
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

// Close unlocks the file for another process. The mapping stays until the process ends, because a
// request under way may read it.
func (a *arena) Close() error {
	if a.lent {
		return a.file.Close()
	}
	return errors.Join(unix.Flock(int(a.file.Fd()), unix.LOCK_UN), a.file.Close())
}

// restoreTable makes a connection table in the file, with the file's connections.
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

// awaitTable makes a connection table in the file of a running switch. The table is empty until
// TakeOver. awaitTable closes the file after an error.
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
		return nil, nil, fmt.Errorf("the file of the running switch has %d bytes, want %d for conntrack.max=%d", st.Size(), size, c.Max)
	}
	boot, err := BootID()
	if err != nil {
		return nil, nil, err
	}
	// Map all pages now. Later each would cost a fault while no packet moves.
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap: %w", err)
	}
	c.Capacity = c.Max
	table, err := conntrack.Await(c, memory, boot)
	return table, &arena{file: f, memory: memory, lent: true}, err
}

// logRestored logs the outcome for the connections of the previous process.
func logRestored(log *slog.Logger, s *local.Switch) {
	r := s.Table().Stats().Restored
	if r.Empty != "" {
		log.Info("no connections restored", "file", conntrackFile, "why", r.Empty)
		return
	}
	log.Info(fmt.Sprintf("%d connections restored, %d torn, in %v", r.Entries, r.Torn, r.Took),
		"file", conntrackFile, "expired", r.Expired, "refused", r.Refused)
}
