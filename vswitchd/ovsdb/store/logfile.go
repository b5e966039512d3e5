package store

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
	"github.com/antrail/antrail/vswitchd/rundir"
)

// The log has the format of Open vSwitch's standalone databases (ovsdb(5)), so ovsdb-tool
// reads it, and antrail starts from a database that ovsdb-server wrote. A record is a line
// "OVSDB JSON LENGTH SHA1" and so many bytes of JSON, a newline included. The first record is
// the schema; each other one is a transaction.

// magic begins each record.
const magic = "OVSDB JSON"

// longestRecord is the largest length of a record that is believed, in bytes.
const longestRecord = 1 << 30

// logFile is the file of a database. The database's lock guards it.
type logFile struct {
	path   string
	f      *os.File
	lock   *os.File
	size   int64
	base   int64 // size after the last compaction
	broken error // a write that failed and could not be undone
}

// openLog opens or makes a log, and calls each with each record. It cuts off an incomplete record at
// the end, which has cut bytes. A damaged record in front of a whole one is an error.
func openLog(path string, each func(record map[string]any) error) (l *logFile, cut int64, err error) {
	lock, err := rundir.Lock(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".~lock~"), 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	l = &logFile{path: path, lock: lock}
	if l.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640); err != nil {
		return nil, 0, errors.Join(err, lock.Close())
	}
	if cut, err = l.read(each); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s: %w", path, err), l.close())
	}
	return l, cut, nil
}

func (l *logFile) close() error { return errors.Join(l.f.Close(), l.lock.Close()) }

// read reads the records, and cuts off what a crash left at the end.
func (l *logFile) read(each func(map[string]any) error) (cut int64, err error) {
	st, err := l.f.Stat()
	if err != nil {
		return 0, err
	}
	r := bufio.NewReader(l.f)
	for l.size < st.Size() {
		text, n, err := readRecord(r)
		if err != nil {
			return l.cutTail(st.Size(), err)
		}
		v, err := jsonrpc.Decode(text)
		record, ok := v.(map[string]any)
		if err != nil || !ok {
			return 0, fmt.Errorf("the record at byte %d is no JSON object: %w", l.size, err)
		}
		if err := each(record); err != nil {
			return 0, fmt.Errorf("the record at byte %d: %w", l.size, err)
		}
		l.size += n
	}
	l.base = l.size
	return 0, nil
}

// readRecord reads one record of n bytes.
func readRecord(r *bufio.Reader) (text []byte, n int64, err error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, 0, io.ErrUnexpectedEOF
	}
	var length int64
	var sum string
	if _, err := fmt.Sscanf(head, magic+" %d %40s\n", &length, &sum); err != nil || length < 0 || length > longestRecord {
		return nil, 0, fmt.Errorf("%.60q is not the head of a record", head)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, length); err != nil {
		return nil, 0, io.ErrUnexpectedEOF
	}
	if got := fmt.Sprintf("%x", sha1.Sum(b.Bytes())); got != sum {
		return nil, 0, fmt.Errorf("the checksum of the record is %s, %s is expected", got, sum)
	}
	return b.Bytes(), int64(len(head)) + length, nil
}

// cutTail cuts the log off behind its last whole record. If a whole record follows, the middle of the
// file is damaged. Then cutTail returns an error, because the cut would lose transactions.
func (l *logFile) cutTail(size int64, why error) (cut int64, err error) {
	if l.size == 0 {
		return 0, fmt.Errorf("this is not a standalone database of OVSDB: %w", why)
	}
	tail, err := io.ReadAll(io.NewSectionReader(l.f, l.size, size-l.size))
	if err != nil {
		return 0, err
	}
	for rest := tail[1:]; ; rest = rest[1:] {
		at := bytes.Index(rest, []byte(magic))
		if at < 0 {
			break
		}
		rest = rest[at:]
		if _, _, err := readRecord(bufio.NewReader(bytes.NewReader(rest))); err == nil {
			return 0, fmt.Errorf("the record at byte %d is damaged, and whole ones follow: %w: restore the file, or truncate it there", l.size, why)
		}
	}
	l.base = l.size
	return size - l.size, errors.Join(l.f.Truncate(l.size), l.f.Sync())
}

// append writes a record behind the others. If durable is set, the record is on the disk when append
// returns. Otherwise a crash of the machine may lose it, but not a crash of the process.
func (l *logFile) append(record map[string]any, durable bool) error {
	if l.broken != nil {
		return l.broken
	}
	b, err := compose(record)
	if err != nil {
		return err
	}
	if _, err = l.f.WriteAt(b, l.size); err == nil && durable {
		err = l.f.Sync()
	}
	if err != nil {
		if undo := l.f.Truncate(l.size); undo != nil {
			l.broken = fmt.Errorf("%s: transactions are refused, because the last one is half written: %w", l.path, undo)
		}
		return err
	}
	l.size += int64(len(b))
	return nil
}

func compose(records ...map[string]any) (out []byte, err error) {
	for _, r := range records {
		b, err := jsonrpc.Encode(r)
		if err != nil {
			return nil, err
		}
		out = append(out, sealed(append(b, '\n'))...)
	}
	return out, nil
}

// sealed is the head of a record and its bytes.
func sealed(b []byte) []byte {
	return append(fmt.Appendf(nil, "%s %d %x\n", magic, len(b), sha1.Sum(b)), b...)
}

// replace writes a new log with these records, and renames it into place. A crash leaves the old log
// or the new one.
func (l *logFile) replace(records ...map[string]any) error {
	b, err := compose(records...)
	if err != nil {
		return err
	}
	fresh := l.path + ".tmp"
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(fresh, l.path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(fresh))
	}
	old := l.f
	l.f, l.size, l.base, l.broken = f, int64(len(b)), int64(len(b)), nil
	return errors.Join(syncDir(filepath.Dir(l.path)), old.Close())
}

// syncDir makes a rename durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
