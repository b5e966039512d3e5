package switchd

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Files that a process keeps for the next one. They are valid only if they belong to this user
// and to this boot of the machine.

// ReadOwnFile reads a plain file of this user that has one name and at most the given bytes. The
// error names the difference.
func ReadOwnFile(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := ownFile(f); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("it is longer than %d bytes", most)
	}
	return b, err
}

// ownFile returns an error if a file is not a plain file of this user.
func ownFile(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		return errors.New("it is not a plain file of this user's with one name")
	}
	return nil
}

// WriteOwnFile replaces a file in one step. Only one process may do so at a time: the one with
// the lock of the connections' file.
func WriteOwnFile(path string, b []byte) error {
	fresh := path + ".new"
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if err = ownFile(f); err == nil {
		_, err = f.Write(b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// BootID is the kernel's id for the current boot.
func BootID() (id [16]byte, err error) {
	const path = "/proc/sys/kernel/random/boot_id"
	text, err := os.ReadFile(path)
	if err != nil {
		return id, err
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%s: %q is not a boot id", path, text)
	}
	copy(id[:], b)
	return id, nil
}

// BootClock is CLOCK_BOOTTIME in nanoseconds, by which connections end. It is the same for this
// process, the next one, and the agent. It is read once. After that the process's own monotonic
// clock carries it on, which costs no system call.
func BootClock() (func() int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("CLOCK_BOOTTIME: %w", err)
	}
	start, base := time.Now(), ts.Nano()
	return func() int64 { return base + int64(time.Since(start)) }, nil
}
