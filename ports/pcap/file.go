// Package pcap reads captured packets from a file and writes packets to one, one by one, for
// replays.
//
//	file.go      readers and writers of files
//	savefile.go  the format pcap
//	ng.go        the format pcapng, to read
//
// It reads pcap with microseconds or nanoseconds in either byte order, pcapng, and both
// compressed by gzip. It writes pcap with nanoseconds. It accepts only Ethernet. Errors name the
// file and the packet by its number in the file, counted from 1 as tcpdump and Wireshark do.
package pcap

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Packet is one captured packet.
type Packet struct {
	Number int       // position in the file, from 1
	Time   time.Time // when it was captured
	Bytes  []byte    // the captured bytes
	Length int       // length on the wire; more than len(Bytes) if the capture was cut
}

// source is the common interface of the two formats' readers.
type source interface {
	// next reads the next packet, without its number. The error is plain io.EOF after the last
	// packet.
	next() (Packet, error)
}

// Reader reads packets one by one. It is for one goroutine.
type Reader struct {
	name   string
	file   io.Closer
	from   source
	number int
}

// Open opens a capture file.
func Open(name string) (*Reader, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(name, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// NewReader reads a capture from any stream; errors call it name.
func NewReader(name string, from io.Reader) (*Reader, error) {
	r := &Reader{name: name}
	buffered := bufio.NewReader(from)
	var err error
	if r.from, err = open(buffered); err != nil {
		return nil, fmt.Errorf("%s: no capture: %w", name, midway(err))
	}
	return r, nil
}

// The first bytes of a section header of pcapng, the same in both byte orders, and of a file
// that gzip has compressed.
const (
	pcapngMagic = "\x0a\x0d\x0d\x0a"
	gzipMagic   = "\x1f\x8b"
)

// open chooses the format by the first bytes.
func open(from *bufio.Reader) (source, error) {
	magic, err := from.Peek(len(pcapngMagic))
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(magic), gzipMagic) {
		unzipped, err := gzip.NewReader(from)
		if err != nil {
			return nil, err
		}
		from = bufio.NewReader(unzipped)
		if magic, err = from.Peek(len(pcapngMagic)); err != nil {
			return nil, err
		}
	}
	if string(magic) == pcapngMagic {
		return openNG(from)
	}
	return openSavefile(from)
}

// midway turns an end of file into an unexpected one, where more must follow.
func midway(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Next is the next packet. It returns plain io.EOF after the last one. If the file ends within a
// packet, the error says so. The caller owns the bytes.
func (r *Reader) Next() (Packet, error) {
	p, err := r.from.next()
	if err == io.EOF {
		return Packet{}, io.EOF
	}
	r.number++
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file ends within it: %w", err)
	}
	if err != nil {
		return Packet{}, fmt.Errorf("%s: packet %d: %w", r.name, r.number, err)
	}
	p.Number = r.number
	return p, nil
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// snapLength is the longest packet of a written file, as in tcpdump and Wireshark.
const snapLength = 262144

// Writer writes packets to a capture file. It is for one goroutine.
type Writer struct {
	name   string
	file   io.Closer
	buffer *bufio.Writer
	number int
}

// Create makes a capture file, or empties an existing one.
func Create(name string) (*Writer, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(name, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.file = f
	return w, nil
}

// NewWriter writes a capture to any stream; errors call it name.
func NewWriter(name string, to io.Writer) (*Writer, error) {
	w := &Writer{name: name, buffer: bufio.NewWriter(to)}
	if _, err := w.buffer.Write(appendFileHeader(nil)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return w, nil
}

// Write appends one packet, captured whole at this time.
func (w *Writer) Write(at time.Time, b []byte) error {
	w.number++
	if len(b) > snapLength {
		return fmt.Errorf("%s: packet %d has %d bytes: at most %d can be written", w.name, w.number, len(b), snapLength)
	}
	_, err := w.buffer.Write(appendPacketHeader(w.buffer.AvailableBuffer(), at, len(b)))
	if err == nil {
		_, err = w.buffer.Write(b)
	}
	if err != nil {
		return fmt.Errorf("%s: packet %d: %w", w.name, w.number, err)
	}
	return nil
}

// Close writes buffered packets and closes the file that Create made.
func (w *Writer) Close() error {
	err := w.buffer.Flush()
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	return nil
}
