package door

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// Messages between two processes that pass descriptors, through a unix socket after an HTTP
// upgrade. A message is its length, four bytes in network order, and JSON. Its descriptors come
// with the first byte (unix(7), SCM_RIGHTS). The kernel passes at most 253 with one byte; the
// others come with the following bytes of the length.

const (
	// maxMessage is the largest message, in bytes.
	maxMessage = 64 << 20
	// perByte is the number of descriptors that the kernel passes at once (SCM_MAX_FD).
	perByte = 253
	// headLen is the size of a message's length in bytes. A message has at most headLen times
	// perByte descriptors.
	headLen = 4
)

// MessageConn is a connection for messages with descriptors. One goroutine may call Send while
// another calls Receive.
type MessageConn struct{ *net.UnixConn }

// Send sends a value as JSON, and copies of descriptors. The caller keeps its own.
func (t MessageConn) Send(v any, fds ...int) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(fds) > headLen*perByte {
		return fmt.Errorf("%d descriptors: a message has %d at most", len(fds), headLen*perByte)
	}
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	for ; len(fds) > perByte; b, fds = b[1:], fds[perByte:] {
		if _, _, err := t.WriteMsgUnix(b[:1], controlOf(fds[:perByte]), nil); err != nil {
			return err
		}
	}
	var rights []byte
	if len(fds) > 0 {
		rights = controlOf(fds)
	}
	sent, _, err := t.WriteMsgUnix(b, rights, nil)
	if err == nil && sent < len(b) {
		_, err = t.Write(b[sent:])
	}
	return err
}

// Receive reads a message into v. The descriptors belong to the caller. After an error none is open.
func (t MessageConn) Receive(v any) (fds []int, err error) {
	text, fds, err := t.receiveMessage()
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		CloseDescriptors(fds)
		return nil, err
	}
	return fds, nil
}

// receiveMessage reads one message. Descriptors may be open after an error.
func (t MessageConn) receiveMessage() (text []byte, fds []int, err error) {
	var head [headLen]byte
	for got := 0; err == nil && got < headLen; {
		var n int
		var some []int
		n, some, err = t.read(head[got:])
		got, fds = got+n, append(fds, some...)
		if err == io.EOF && got > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	length := binary.BigEndian.Uint32(head[:])
	if err == nil && length > maxMessage {
		err = fmt.Errorf("a message of %d bytes: want %d at most", length, maxMessage)
	}
	if err != nil {
		return nil, fds, err
	}
	// The buffer grows with the received bytes, so a length alone costs no memory.
	text, err = io.ReadAll(io.LimitReader(t, int64(length)))
	if err == nil && len(text) < int(length) {
		err = fmt.Errorf("the message ends after %d of %d bytes: %w", len(text), length, io.ErrUnexpectedEOF)
	}
	return text, fds, err
}

// read reads bytes, and the descriptors that come with them. Some may be open after an error.
func (t MessageConn) read(b []byte) (n int, fds []int, err error) {
	rights := make([]byte, controlSpace(perByte))
	n, m, flags, _, err := t.ReadMsgUnix(b, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil {
		fds, err = descriptors(rights[:m])
	}
	if err == nil && flags&controlCut != 0 {
		err = errors.New("too many descriptors at once, or this process may open no more")
	}
	return n, fds, err
}

// CloseDescriptors closes all descriptors.
func CloseDescriptors(fds []int) {
	for _, fd := range fds {
		os.NewFile(uintptr(fd), "").Close()
	}
}

// Hijack takes the connection of a request from the HTTP server, for another protocol.
func Hijack(w http.ResponseWriter, protocol string) (MessageConn, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return MessageConn{}, err
	}
	t, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return MessageConn{}, errors.New("the connection is not a unix socket")
	}
	if _, err = fmt.Fprintf(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol); err != nil {
		t.Close()
	}
	return MessageConn{t}, err
}

// Upgrade asks the server of a connection to change to another protocol. header has more fields
// of the request; nil for none.
func Upgrade(conn net.Conn, path, protocol string, header http.Header) error {
	var more strings.Builder
	if err := header.Write(&more); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: antrail\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n%s\r\n", path, protocol, &more); err != nil {
		return err
	}
	// The server waits for the first message, so the reader takes no byte too many.
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		resp.Body.Close()
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	return nil
}
