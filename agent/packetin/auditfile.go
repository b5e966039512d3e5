package packetin

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// AuditFile is a log file that rotates at a size: NAME.1 is the newest old file, NAME.2 the one
// before it. The first line makes the file. A line is never split between files.
type AuditFile struct {
	Path string
	Max  int64 // bytes
	Keep int   // old files

	mu   sync.Mutex
	file *os.File // nil: not open
	size int64
}

// Write appends lines. After an error, the next Write opens the file again.
func (f *AuditFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := f.file.Write(b)
	f.size += int64(n)
	if err != nil {
		err = errors.Join(err, f.close())
	}
	return n, err
}

// ready opens the file, and rotates it if n more bytes do not fit.
func (f *AuditFile) ready(n int64) error {
	if err := f.open(); err != nil {
		return err
	}
	if f.size == 0 || f.size+n <= f.Max {
		return nil
	}
	if err := errors.Join(f.close(), f.rotate()); err != nil {
		return err
	}
	return f.open()
}

func (f *AuditFile) open() error {
	if f.file != nil {
		return nil
	}
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	i, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, i.Size()
	return nil
}

// rotate renames every file to the next number. The oldest is lost.
func (f *AuditFile) rotate() error {
	if f.Keep == 0 {
		return os.Remove(f.Path)
	}
	for i := f.Keep - 1; i > 0; i-- {
		if err := os.Rename(f.old(i), f.old(i+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(f.Path, f.old(1))
}

func (f *AuditFile) old(i int) string { return fmt.Sprintf("%s.%d", f.Path, i) }

// Close closes the file; a later Write opens it again.
func (f *AuditFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.close()
}

func (f *AuditFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
